/** What `fetch` says in words alone; the texts of its other refusals may have the URL in them. */
const words: ReadonlyArray<string> = ["unexpected redirect", "bad port"]

/** Why a server was not reached, without anything of its URL; null: nobody knows. */
export const reason = (cause: unknown): string | null => {
  if (!(cause instanceof Error)) return null
  if ("code" in cause && typeof cause.code === "string") return cause.code
  return words.find((text) => text === cause.message) ?? reason(cause.cause)
}
