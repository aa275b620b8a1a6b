import * as Result from "effect/Result"
import type { Hex } from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Fragment from "./Fragment.js"
import * as Grammar from "./Grammar.js"
import * as Parameter from "./Parameter.js"

/** A custom error as a contract declares it. */
export interface ErrorDefinition {
  readonly name: string
  readonly inputs: ReadonlyArray<Parameter.Parameter>
  /** First 4 bytes of the revert data. */
  readonly selector: Hex
  /** `error NotEnough(uint256 available, uint256 required)` */
  readonly canonical: string
}

const make = (name: string, inputs: ReadonlyArray<Parameter.Parameter>): ErrorDefinition => ({
  name,
  inputs,
  selector: Keccak.selector(`${name}${Parameter.canonicalList(inputs)}`),
  canonical: `error ${name}${Parameter.fullList(inputs)}`
})

const invalid = (misfit: Fragment.Misfit) => Fragment.invalid("error", misfit)

/**
 * Human-readable text, the keyword `error` optional. With `canonical`, a canonical text is read back to the same error.
 *
 * @example Result.getOrThrow(ErrorDefinition.parse("NotEnough(uint256 available, uint256 required)")).selector
 * // "0x8b29af59"
 */
export const parse = (
  text: string,
  options: Grammar.Options = {}
): Result.Result<ErrorDefinition, Fragment.InvalidDefinition> =>
  Grammar.read(
    text,
    (reader) => {
      reader.take("error")
      const name = reader.name("an error")
      return make(name, reader.list({ indexed: false }))
    },
    options
  ).pipe(Result.mapError((why) => invalid({ path: "", why })))

/**
 * A JSON fragment of type `error` (Solidity's JSON ABI).
 *
 * @example Result.getOrThrow(ErrorDefinition.fromJson({ type: "error", name: "Denied", inputs: [] })).selector
 * // "0xe3372e2d"
 */
export const fromJson = (fragment: unknown): Result.Result<ErrorDefinition, Fragment.InvalidDefinition> =>
  Fragment.read(fragment, "error").pipe(
    Result.map(({ inputs, name }) => make(name, inputs)),
    Result.mapError(invalid)
  )
