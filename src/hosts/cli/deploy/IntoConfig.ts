import { readFileSync } from "node:fs"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import * as ConfigText from "../../config/ConfigText.js"
import type { NetworkEntry } from "./Plan.js"

/** A configuration file that a deployment completes. */
export interface Target {
  readonly path: string
  readonly text: string
}

const entries = (file: unknown, list: string): ReadonlyArray<unknown> => {
  const found = Predicate.hasProperty(file, list) ? file[list] : []
  return Array.isArray(found) ? found : []
}

const indexOf = (list: ReadonlyArray<unknown>, field: string, value: unknown): number =>
  list.findIndex((entry) => Predicate.hasProperty(entry, field) && entry[field] === value)

/** Reads the file, which must have an entry for each account, before anything is sent to the chain. */
export const read = (path: string, accounts: ReadonlyArray<string>): Result.Result<Target, string> =>
  Result.flatMap(
    Result.try({
      try: () => {
        const text = readFileSync(path, "utf8")
        return { text, file: JSON.parse(ConfigText.json(text)) as unknown }
      },
      catch: () => `${path} cannot be read as a configuration`
    }),
    ({ file, text }) => {
      const missing = accounts.filter((id) => indexOf(entries(file, "accounts"), "id", id) < 0)
      if (missing.length > 0) return Result.fail(`${path} has no account ${missing.join(", ")}`)
      return Predicate.hasProperty(file, "networks") && Array.isArray(file.networks)
        ? Result.succeed({ path, text })
        : Result.fail(`${path} has no networks`)
    }
  )

/** The file's text with the deployed addresses. Keeps the node, the sponsor's budget and comments. */
export const fill = ({ text }: Target, { accounts, networks }: NetworkEntry): string => {
  let edited = text
  const at = (...path: ReadonlyArray<string | number>): unknown =>
    path.reduce<unknown>(
      (value, key) => (Predicate.hasProperty(value, key) ? value[key] : undefined),
      JSON.parse(ConfigText.json(edited))
    )
  /** Completes the entry of a list that has the same id, or appends it. */
  const put = (
    list: ReadonlyArray<string | number>,
    id: string,
    entry: Readonly<Record<string, unknown>>,
    kept: ReadonlyArray<string>
  ) => {
    const found = at(...list)
    const present = Array.isArray(found) ? indexOf(found, id, entry[id]) : -1
    if (!Array.isArray(found)) edited = ConfigText.set(edited, list, [entry])
    else if (present < 0) edited = ConfigText.set(edited, [...list, found.length], entry)
    else
      for (const [field, value] of Object.entries(entry)) {
        const path = [...list, present, field]
        if (value === undefined || field === id || (kept.includes(field) && at(...path) !== undefined))
          continue
        const inner = Predicate.hasProperty(value, "paymaster") && Predicate.isObject(at(...path))
        edited = inner
          ? ConfigText.set(edited, [...path, "paymaster"], value.paymaster)
          : ConfigText.set(edited, path, value)
      }
  }
  for (const network of networks) put(["networks"], "chainId", network, ["rpc"])
  for (const { id, networks: own } of accounts) {
    const account = indexOf(entries(at(), "accounts"), "id", id)
    for (const network of own) put(["accounts", account, "networks"], "chainId", network, [])
  }
  return edited
}
