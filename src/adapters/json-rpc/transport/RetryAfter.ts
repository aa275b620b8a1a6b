/** Milliseconds from now, from either form of Retry-After (RFC 9110, 10.2.3); 0 when it is absent or senseless. */
export const millis = (header: string | undefined, now: number): number => {
  if (header === undefined) return 0
  const wait = /^\d{1,9}$/.test(header) ? Number(header) * 1_000 : Date.parse(header) - now
  return Number.isFinite(wait) ? Math.max(0, wait) : 0
}
