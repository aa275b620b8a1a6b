/**
 * A UUID of version 7 (RFC 9562, 5.7): 48 bits of `now`, Unix milliseconds, and 74 random bits. Ids that grow with time are
 * stored close together, so a commit touches fewer pages of the database's indexes.
 */
export const make = (now: number): string => {
  const time = now.toString(16).padStart(12, "0")
  return `${time.slice(0, 8)}-${time.slice(8)}-7${globalThis.crypto.randomUUID().slice(15)}`
}
