import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import type * as Hex from "../../primitives/Hex.js"
import * as Keccak from "../../primitives/Keccak.js"

/**
 * The struct types of EIP-712 typed data, from its JSON. Refuses types without exactly one hash, or with endless work:
 * types that contain themselves, names that are not identifiers, aliases, unknown types.
 */

/** Type of a member. */
export type Type =
  | { readonly kind: "bool" | "address" | "string" | "bytes" }
  | { readonly kind: "fixedBytes"; readonly size: number }
  | { readonly kind: "integer"; readonly signed: boolean; readonly bits: number }
  | { readonly kind: "struct"; readonly name: string }
  /** `length` null: of any length. */
  | { readonly kind: "array"; readonly of: Type; readonly length: number | null }

export interface Member {
  readonly name: string
  readonly type: Type
}

export interface Struct {
  readonly members: ReadonlyArray<Member>
  /** `encodeType`: the struct, then its inner structs in the order of their names. */
  readonly type: string
  /** The same with the struct itself in the order of the names, as inside another struct. */
  readonly typeSorted: string
  /** keccak256 of `type`. */
  readonly typeHash: Hex.Bytes32
}

export type TypeTable = ReadonlyMap<string, Struct>

export const maxTypes = 64
export const maxMembers = 256
export const maxNameLength = 80
/** Most structs inside each other, and most dimensions of an array. */
export const maxDepth = 16

const identifier = /^[A-Za-z_$][A-Za-z0-9_$]*$/
/** Structs may be named with colons, as those of Hyperliquid are: `HyperliquidTransaction:UsdSend`. */
const structName = /^[A-Za-z_$][A-Za-z0-9_$:]*$/
const shape = /^([A-Za-z_$][A-Za-z0-9_$:]*)((?:\[(?:[1-9][0-9]{0,5})?\])*)$/
const isName = (text: string, pattern: RegExp): boolean => text.length <= maxNameLength && pattern.test(text)

/** Types that are not structs; `undefined` for every other name. */
const atomic = (name: string): Type | undefined => {
  if (name === "bool" || name === "address" || name === "string" || name === "bytes") return { kind: name }
  const [, word, digits = ""] = /^(u?int|bytes)([1-9][0-9]{0,2})$/.exec(name) ?? []
  const size = Number(digits)
  if (word === "bytes") return size <= 32 ? { kind: "fixedBytes", size } : undefined
  return word !== undefined && size % 8 === 0 && size <= 256
    ? { kind: "integer", signed: word === "int", bits: size }
    : undefined
}

const reserved = /^(?:u?int|u?fixed|bytes)[0-9]*(?:x[0-9]+)?$/

/** `Mail[2][]`: its type, where `Mail` is one of the struct types. */
const typeOf = (text: string, structs: ReadonlySet<string>): Result.Result<Type, string> => {
  const [, base = "", dimensions = ""] = shape.exec(text) ?? []
  if (base === "uint" || base === "int")
    return Result.fail(`expected ${base}256: EIP-712 has no alias ${base}`)
  let type = atomic(base) ?? (structs.has(base) ? { kind: "struct" as const, name: base } : undefined)
  if (type === undefined) return Result.fail("expected a type of Solidity, or one of types")
  const lengths = dimensions === "" ? [] : dimensions.slice(1, -1).split("][")
  if (lengths.length > maxDepth) return Result.fail(`expected at most ${maxDepth} dimensions`)
  for (const length of lengths)
    type = { kind: "array", of: type, length: length === "" ? null : Number(length) }
  return Result.succeed(type)
}

/** A struct's members and its written form. */
interface Written extends Pick<Struct, "members"> {
  readonly text: string
  /** Structs of its members, without those inside of them. */
  readonly uses: ReadonlyArray<string>
}

const structOf = (type: Type): string | null =>
  type.kind === "array" ? structOf(type.of) : type.kind === "struct" ? type.name : null

const written = (
  name: string,
  json: unknown,
  structs: ReadonlySet<string>
): Result.Result<Written, string> => {
  if (!isName(name, structName) || atomic(name) !== undefined || reserved.test(name))
    return Result.fail(`types: expected names that are identifiers of at most ${maxNameLength} characters`)
  if (!Array.isArray(json)) return Result.fail(`types.${name}: expected an array`)
  const members: Array<Member> = []
  const texts: Array<string> = []
  const seen = new Set<string>()
  for (const [index, each] of json.entries()) {
    const at = `types.${name}[${index}]`
    if (!Predicate.isObject(each) || typeof each.name !== "string" || typeof each.type !== "string")
      return Result.fail(`${at}: expected an object of name and type`)
    if (!isName(each.name, identifier) || seen.has(each.name))
      return Result.fail(`${at}.name: expected an identifier that no other member has`)
    if (each.type.length > 2 * maxNameLength) return Result.fail(`${at}.type: the name is too long`)
    const type = Result.mapError(typeOf(each.type, structs), (why) => `${at}.type: ${why}`)
    if (Result.isFailure(type)) return Result.fail(type.failure)
    seen.add(each.name)
    members.push({ name: each.name, type: type.success })
    texts.push(`${each.type} ${each.name}`)
  }
  const uses = new Set(members.flatMap(({ type }) => structOf(type) ?? []))
  return Result.succeed({ members, text: `${name}(${texts.join(",")})`, uses: [...uses] })
}

/** For every struct all structs inside of it; `Failure` when one contains itself or is too deep. */
const reachable = (all: ReadonlyMap<string, Written>): Result.Result<Map<string, Set<string>>, string> => {
  const done = new Map<string, Set<string>>()
  const depths = new Map<string, number>()
  const visit = (name: string, above: ReadonlyArray<string>): string | null => {
    if (done.has(name)) return null
    if (above.includes(name)) return `types.${name}: the type contains itself`
    const inside = new Set<string>()
    let depth = 0
    for (const used of all.get(name)?.uses ?? []) {
      const problem = visit(used, [...above, name])
      if (problem !== null) return problem
      depth = Math.max(depth, 1 + (depths.get(used) ?? 0))
      for (const each of [used, ...(done.get(used) ?? [])]) inside.add(each)
    }
    if (depth > maxDepth) return `types: expected at most ${maxDepth} types inside each other`
    done.set(name, inside)
    depths.set(name, depth)
    return null
  }
  for (const name of all.keys()) {
    const problem = visit(name, [])
    if (problem !== null) return Result.fail(problem)
  }
  return Result.succeed(done)
}

/** The member `types` of typed data. */
export const from = (json: unknown): Result.Result<TypeTable, string> =>
  Result.gen(function* () {
    if (!Predicate.isObject(json)) return yield* Result.fail("types: expected an object")
    const entries = Object.entries(json)
    if (entries.length > maxTypes) return yield* Result.fail(`types: expected at most ${maxTypes}`)
    const count = entries.reduce((sum, [, members]) => sum + (Array.isArray(members) ? members.length : 0), 0)
    if (count > maxMembers) return yield* Result.fail(`types: expected at most ${maxMembers} members in all`)
    const names = new Set(entries.map(([name]) => name))
    const all = new Map<string, Written>()
    for (const [name, members] of entries) all.set(name, yield* written(name, members, names))
    const inside = yield* reachable(all)
    const table = new Map<string, Struct>()
    for (const [name, { members, text }] of all) {
      const others = [...(inside.get(name) ?? [])].sort()
      const textOf = (names: ReadonlyArray<string>) => names.map((each) => all.get(each)?.text ?? "").join("")
      const type = text + textOf(others)
      const typeSorted = textOf([name, ...others].sort())
      table.set(name, { members, type, typeSorted, typeHash: Keccak.hashText(type) })
    }
    return table
  })
