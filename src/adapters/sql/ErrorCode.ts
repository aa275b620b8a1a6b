const shape = /^[A-Z0-9_]{1,40}$/

/**
 * The database's code of a failure (`SQLITE_FULL`, `40001`), in brackets after a space, or nothing. Show no other part of a
 * database error: messages quote SQL and data.
 */
export const suffix = (failure: unknown): string => {
  let cause = failure
  for (let depth = 0; depth < 5 && typeof cause === "object" && cause !== null; depth++) {
    if ("code" in cause && typeof cause.code === "string" && shape.test(cause.code)) return ` (${cause.code})`
    cause = "cause" in cause ? cause.cause : undefined
  }
  return ""
}
