import * as Data from "effect/Data"
import * as Either from "effect/Either"

/**
 * What was given is no value of the type. `message` says what is expected and does not quote what was given: it may be
 * a secret in the wrong place.
 */
export class InvalidValue extends Data.TaggedError("InvalidValue")<{
  readonly type: "Address" | "Bytes32" | "CreationCode" | "Custody" | "Hex" | "Percent" | "Salt" | "Uint"
  readonly message: string
}> {}

/** The same with the message alone, for failures that name the value themselves. */
export const toText = <A>(result: Either.Either<A, InvalidValue>): Either.Either<A, string> =>
  Either.mapLeft(result, ({ message }) => message)
