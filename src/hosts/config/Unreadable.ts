/** Where a text stops to be JSON, if Node says it; never what stands there, which may be a secret. */
export const brokenAt = (text: string): string => {
  if (text.startsWith("\uFEFF")) return ": it begins with a byte order mark"
  try {
    JSON.parse(text)
    return ""
  } catch (cause) {
    const message = cause instanceof Error ? cause.message : ""
    if (message === "Unexpected end of JSON input") return ": it ends too early"
    const [, position] = /at position (\d+)/.exec(message) ?? []
    if (position === undefined) return ""
    const lines = text.slice(0, Number(position)).split("\n")
    return `: line ${lines.length}, column ${(lines.at(-1) ?? "").length + 1}`
  }
}

/** Why there is no text of a file. */
export const reason = (cause: unknown): string => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown"
  return code === "ENOENT" ? "there is no such file" : `the file can not be read (${code})`
}
