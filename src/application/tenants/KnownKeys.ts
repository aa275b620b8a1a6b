import type { Content, Key } from "../ports/TenantStore.js"
import { allScopes, type Listed } from "./FileAccounts.js"

/** An API key of the configuration file or the database. */
export interface KnownKey extends Key {
  /** Its name for operators: the first digits of its hash, which reveal nothing about the key. */
  readonly id: string
  /** Unix milliseconds; null: no use was recorded. */
  readonly usedAt: number | null
}

export const idOf = (hash: string): string => hash.slice(0, 12)

/** The keys of file and database, with their ends and last uses. */
export const of = (
  accounts: ReadonlyArray<Pick<Listed, "accountId" | "keys">>,
  content: Pick<Content, "keys">,
  uses: ReadonlyMap<string, number>
): ReadonlyArray<KnownKey> => {
  const ends = new Map(content.keys.map(({ endsAt, hash }) => [hash, endsAt]))
  const ofFile = accounts.flatMap(({ accountId, keys }) =>
    keys.map(
      ({ hash, scopes }): Key => ({
        hash,
        accountId,
        scopes: scopes.length === 0 ? allScopes : scopes,
        origin: "file",
        issuedAt: 0,
        endsAt: ends.get(hash) ?? null
      })
    )
  )
  const issued = content.keys.filter(({ origin }) => origin === "command")
  return [...ofFile, ...issued].map((key) => ({
    ...key,
    id: idOf(key.hash),
    usedAt: uses.get(key.hash) ?? null
  }))
}
