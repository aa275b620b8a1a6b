import * as Result from "effect/Result"
import type { Bytes32 } from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Fragment from "./Fragment.js"
import * as Grammar from "./Grammar.js"
import * as Parameter from "./Parameter.js"

/** An event as a contract declares it. */
export interface EventDefinition {
  readonly name: string
  readonly inputs: ReadonlyArray<Parameter.Parameter>
  /** An anonymous event does not log its topic. */
  readonly anonymous: boolean
  /** keccak256 of `Name(type,type)`. */
  readonly topic: Bytes32
  /** `event Transfer(address indexed from, address indexed to, uint256 value)`, ` anonymous` last. */
  readonly canonical: string
}

const make = (
  name: string,
  inputs: ReadonlyArray<Parameter.Parameter>,
  anonymous: boolean
): Result.Result<EventDefinition, Fragment.Misfit> => {
  const most = anonymous ? 4 : 3
  if (inputs.filter((input) => input.indexed === true).length > most)
    return Result.fail({ path: "inputs", why: `more than ${most} parameters are indexed` })
  return Result.succeed({
    name,
    inputs,
    anonymous,
    topic: Keccak.hashText(`${name}${Parameter.canonicalList(inputs)}`),
    canonical: `event ${name}${Parameter.fullList(inputs)}${anonymous ? " anonymous" : ""}`
  })
}

const invalid = (misfit: Fragment.Misfit) => Fragment.invalid("event", misfit)

/**
 * Human-readable text, the keyword `event` optional. With `canonical`, a canonical text is read back to the same event.
 *
 * @example Result.getOrThrow(Event.parse("Transfer(address indexed from, address indexed to, uint256 value)")).topic
 * // "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"
 */
export const parse = (
  text: string,
  options: Grammar.Options = {}
): Result.Result<EventDefinition, Fragment.InvalidDefinition> =>
  Grammar.read(
    text,
    (reader) => {
      reader.take("event")
      const name = reader.name("an event")
      return { name, inputs: reader.list({ indexed: true }), anonymous: reader.take("anonymous") }
    },
    options
  ).pipe(
    Result.mapError((why) => ({ path: "", why })),
    Result.flatMap(({ anonymous, inputs, name }) => make(name, inputs, anonymous)),
    Result.mapError(invalid)
  )

/**
 * A JSON fragment of type `event` (Solidity's JSON ABI).
 *
 * @example Result.getOrThrow(Event.fromJson({ type: "event", name: "Paused", inputs: [] })).topic
 * // "0x9e87fac88ff661f02d44f95383c817fece4bce600a3dab7a54406878b965e752"
 */
export const fromJson = (fragment: unknown): Result.Result<EventDefinition, Fragment.InvalidDefinition> =>
  Fragment.read(fragment, "event").pipe(
    Result.flatMap(({ anonymous, inputs, name }) => make(name, inputs, anonymous)),
    Result.mapError(invalid)
  )
