/** Messages of `fetch` that contain no URL; its other messages may. */
const words: ReadonlyArray<string> = ["unexpected redirect", "bad port"]

/** Reason why a server was unreachable, without its URL; null: unknown. */
export const reason = (cause: unknown): string | null => {
  if (!(cause instanceof Error)) return null
  if ("code" in cause && typeof cause.code === "string") return cause.code
  return words.find((text) => text === cause.message) ?? reason(cause.cause)
}
