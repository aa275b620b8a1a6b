/** Why there is no text of a file. */
export const reason = (cause: unknown): string => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown"
  return code === "ENOENT" ? "there is no such file" : `the file can not be read (${code})`
}
