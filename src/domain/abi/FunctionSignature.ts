import * as Data from "effect/Data"
import * as Result from "effect/Result"
import type { Hex } from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Fragment from "./Fragment.js"
import * as Grammar from "./Grammar.js"
import * as Parameter from "./Parameter.js"

/** A contract function as callers name it. */
export interface FunctionSignature {
  readonly name: string
  readonly inputs: ReadonlyArray<Parameter.Parameter>
  /** Return types; null when the text omits them. */
  readonly outputs: ReadonlyArray<Parameter.Parameter> | null
  /** `name(type,type)`, the text that is hashed. */
  readonly canonical: string
  /** 4 bytes; null for `receive()`, which is a call with empty data. */
  readonly selector: Hex | null
}

const visibilities: ReadonlySet<string> = new Set(["external", "public"])
const mutabilities: ReadonlySet<string> = new Set(["pure", "view", "payable", "nonpayable", "constant"])
const notFunctions: ReadonlySet<string> = new Set(["function", "constructor", "returns"])

const make = (
  name: string,
  inputs: ReadonlyArray<Parameter.Parameter>,
  outputs: ReadonlyArray<Parameter.Parameter> | null
): FunctionSignature => {
  const canonical = `${name}${Parameter.canonicalList(inputs)}`
  return { name, inputs, outputs, canonical, selector: Keccak.selector(canonical) }
}

const receive: FunctionSignature = {
  name: "receive",
  inputs: [],
  outputs: [],
  canonical: "receive()",
  selector: null
}

const read = (reader: Grammar.Reader): FunctionSignature => {
  const keyword = reader.take("function")
  const name = reader.name("a function")
  if (notFunctions.has(name)) return reader.refuse(`"${name}" cannot be called by name`)
  const inputs = reader.list({ indexed: false })
  let visibility = ""
  let mutability = ""
  for (;;) {
    const word = reader.oneOf(visibilities)
    if (word !== "" && visibility !== "") return reader.refuse(`"${word}" after "${visibility}"`)
    visibility ||= word
    const next = reader.oneOf(mutabilities)
    if (next !== "" && mutability !== "") return reader.refuse(`"${next}" after "${mutability}"`)
    mutability ||= next
    if (word === "" && next === "") break
  }
  const outputs = reader.take("returns") ? reader.list({ indexed: false }) : null
  if (reader.take("@")) reader.number("the gas")
  if (name !== "receive" || inputs.length > 0) return make(name, inputs, outputs)
  // In Solidity the keyword makes `receive` an ordinary function with a selector; guessing would misdirect value.
  if (keyword)
    return reader.refuse("a call with empty data is written receive(), without the keyword function")
  if (outputs !== null) return reader.refuse("receive() returns nothing")
  return receive
}

/**
 * A human-readable function signature: `name(type,type)`, with or without `function`, parameter names, data
 * locations, `external`/`public`, one of `pure`/`view`/`payable`/`nonpayable`, or `constant` of old compilers,
 * `returns (...)`, and `@` with an amount of gas, as ethers writes it.
 * `uint`, `int` and `byte` are canonicalised, `tuple` is optional, types may be nested 16 deep.
 */
export const parse = (
  text: string,
  options: Grammar.Options = {}
): Result.Result<FunctionSignature, InvalidSignature> =>
  Result.mapError(
    Grammar.read(text, read, options),
    (why) => new InvalidSignature({ message: "invalid function signature", why })
  )

/**
 * The types that a call returns: `uint256`, `uint256,string`, `(uint256,string)`,
 * `returns (uint256 a, string b)`. Parentheses around the whole text are the list of return values, so one
 * tuple value is `((a,b))` or `tuple(a,b)`, and an array of tuples `(a,b)[]`. `()` returns nothing.
 */
export const parseReturns = (
  text: string
): Result.Result<ReadonlyArray<Parameter.Parameter>, InvalidSignature> =>
  Result.mapError(
    Grammar.read(text, (reader) =>
      reader.take("returns") || reader.enclosed() ? reader.list({ indexed: false }) : reader.bareList()
    ),
    (why) => new InvalidSignature({ message: "invalid return signature", why })
  )

/** A JSON fragment of type `function` (Solidity's JSON ABI); `Failure` names its problem. */
export const fromJson = (fragment: unknown): Result.Result<FunctionSignature, string> =>
  Result.flatMap(
    Result.mapError(Fragment.read(fragment, "function"), Fragment.text),
    ({ inputs, name, outputs }) =>
      notFunctions.has(name)
        ? Result.fail(`"${name}" cannot be called by name`)
        : Result.succeed(make(name, inputs, outputs))
  )

/** Text that is not a signature. `message` is fixed, `why` names the problem. */
export class InvalidSignature extends Data.TaggedError("InvalidSignature")<{
  readonly message: string
  readonly why: string
}> {}
