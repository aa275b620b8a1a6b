import * as Result from "effect/Result"
import type { Problem } from "./FileFields.js"

const prefix = "CASTELLAN__"

type Json = null | boolean | number | string | ReadonlyArray<Json> | { readonly [name: string]: Json }

const isObject = (value: unknown): value is Readonly<Record<string, Json>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** Parses JSON and keeps other text. */
const valueOf = (text: string): Json =>
  Result.getOrElse(Result.try({ try: () => JSON.parse(text) as Json, catch: () => null }), () => text)

const put = (
  tree: Json | undefined,
  [first, ...rest]: ReadonlyArray<string>,
  value: Json
): Result.Result<Json, string> => {
  if (first === undefined) return Result.succeed(value)
  if (Array.isArray(tree)) {
    const index = /^[0-9]{1,6}$/.test(first) ? Number(first) : -1
    if (index < 0 || index > tree.length) return Result.fail(`expected the index of a list of ${tree.length}`)
    return Result.map(put(tree[index], rest, value), (own) => [
      ...tree.slice(0, index),
      own,
      ...tree.slice(index + 1)
    ])
  }
  if (tree !== undefined && !isObject(tree)) return Result.fail("there is nothing below this field")
  const own = isObject(tree) && Object.hasOwn(tree, first) ? tree[first] : undefined
  // `fromEntries` creates own properties for any name, including `__proto__`.
  return Result.map(put(own, rest, value), (below) =>
    Object.fromEntries([...Object.entries(tree ?? {}).filter(([name]) => name !== first), [first, below]])
  )
}

/**
 * Applies the environment's overrides to the file's content: `CASTELLAN__limits__bodyBytes=65536` and
 * `CASTELLAN__networks__0__rpc={"env": "RPC"}`. Names are the file's, case-sensitive; values are JSON or text.
 */
export const apply = (
  file: unknown,
  env: Readonly<Record<string, string | undefined>>
): { readonly file: unknown; readonly problems: ReadonlyArray<Problem> } => {
  const problems: Array<Problem> = []
  let result = file as Json
  for (const [name, text] of Object.entries(env).sort(([a], [b]) => (a < b ? -1 : 1))) {
    if (!name.startsWith(prefix) || text === undefined) continue
    const path = name.slice(prefix.length).split("__")
    const done = path.includes("")
      ? Result.fail("expected field names between __")
      : put(result, path, valueOf(text))
    if (Result.isFailure(done)) problems.push({ path: name, message: done.failure })
    else result = done.success
  }
  return { file: result, problems }
}
