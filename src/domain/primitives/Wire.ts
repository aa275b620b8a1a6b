import * as Either from "effect/Either"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"
import type { InvalidValue } from "./InvalidValue.js"

/** Wire codec: what `from` reads comes in, what `to` writes goes out. */
export const codec = <I, A, E>(
  wire: Schema.Schema<I>,
  own: Schema.Schema<A, E>,
  from: (value: I) => Either.Either<NoInfer<E>, InvalidValue>,
  to: (value: NoInfer<E>) => NoInfer<I>
): Schema.Schema<A, I> =>
  Schema.transformOrFail(wire, own, {
    strict: true,
    decode: (value, _, ast) =>
      Either.mapLeft(from(value), ({ message }) => new ParseResult.Type(ast, value, message)),
    encode: (value) => ParseResult.succeed(to(value))
  })
