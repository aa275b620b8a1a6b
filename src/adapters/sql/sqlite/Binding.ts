/**
 * What to do when the native part of SQLite's package does not load: npm was not allowed to build it, or built it for
 * another version of Node. Null: something else is wrong.
 */
export const problem = (failure: unknown): string | null => {
  let cause = failure
  for (let depth = 0; depth < 5 && cause instanceof Error; depth++) {
    if (
      cause.message.startsWith("Could not locate the bindings file") ||
      ("code" in cause && cause.code === "ERR_DLOPEN_FAILED")
    )
      return `better-sqlite3 has no binding for Node ${process.versions.node} on this machine: "npm rebuild better-sqlite3" builds it (where npm asks for it, "npm install-scripts approve better-sqlite3" before that)`
    cause = cause.cause
  }
  return null
}
