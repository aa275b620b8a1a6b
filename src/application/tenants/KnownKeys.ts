import { type Content, idOf, type Key } from "../ports/TenantStore.js"
import type { Listed } from "./FileAccounts.js"

/** An API key of the configuration file or the database. */
export interface KnownKey extends Key {
  readonly id: string
  /** Unix milliseconds; null: no use was recorded. */
  readonly usedAt: number | null
}

/** The keys of file and database, with their ends. */
export const all = (
  accounts: ReadonlyArray<Pick<Listed, "accountId" | "keys">>,
  content: Pick<Content, "keys">
): ReadonlyArray<Key> => {
  const ends = new Map(content.keys.map(({ endsAt, hash }) => [hash, endsAt]))
  const ofFile = accounts.flatMap(({ accountId, keys }) =>
    keys.map(
      ({ hash, scopes }): Key => ({
        hash,
        accountId,
        scopes,
        origin: "file",
        issuedAt: 0,
        endsAt: ends.get(hash) ?? null
      })
    )
  )
  return [...ofFile, ...content.keys.filter(({ origin }) => origin === "command")]
}

/** `all`, with their last uses. */
export const of = (
  accounts: ReadonlyArray<Pick<Listed, "accountId" | "keys">>,
  content: Pick<Content, "keys">,
  uses: ReadonlyMap<string, number>
): ReadonlyArray<KnownKey> =>
  all(accounts, content).map((key) => ({ ...key, id: idOf(key.hash), usedAt: uses.get(key.hash) ?? null }))
