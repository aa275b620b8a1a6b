import * as Result from "effect/Result"

/** An IP address; an IPv4 address mapped into IPv6 is that IPv4 address. */
export interface IpAddress {
  readonly bits: 32 | 128
  readonly value: bigint
}

/**
 * Kind of network of an IP address, by the IANA special-purpose registries (RFC 6890) and the well-known addresses of
 * clouds.
 *
 * - `public`: any host of the Internet
 * - `loopback`: this machine
 * - `other`: everything else, including text that is not an address
 */
export type Reach = "public" | "loopback" | "other"

/** Addresses with a common prefix. */
export interface Range {
  readonly bits: 32 | 128
  readonly base: bigint
  readonly shift: bigint
}

const within = (value: bigint, { base, shift }: Range): boolean => value >> shift === base >> shift

/** Whether an address is of a range. */
export const contains = (range: Range, { bits, value }: IpAddress): boolean =>
  range.bits === bits && within(value, range)

const parse4 = (text: string): bigint | undefined => {
  const match = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text)
  if (match === null) return undefined
  let value = 0n
  for (const part of match.slice(1)) {
    if (Number(part) > 255 || (part.length > 1 && part.startsWith("0"))) return undefined
    value = (value << 8n) | BigInt(part)
  }
  return value
}

/** RFC 4291, 2.2: eight groups, `::` once, an IPv4 address as the last two. Zone identifiers are refused. */
const parse6 = (text: string): bigint | undefined => {
  const dotted = /^(.*:)(\d+\.\d+\.\d+\.\d+)$/.exec(text)
  const tail = dotted === null ? undefined : parse4(dotted[2] ?? "")
  if (dotted !== null && tail === undefined) return undefined
  const plain =
    dotted === null || tail === undefined
      ? text
      : `${dotted[1]}${(tail >> 16n).toString(16)}:${(tail & 0xffffn).toString(16)}`
  const halves = plain.split("::")
  if (halves.length > 2) return undefined
  const [head = [], rest = []] = halves.map((half) => (half === "" ? [] : half.split(":")))
  const gap = 8 - head.length - rest.length
  if (halves.length === 2 ? gap < 1 : gap !== 0) return undefined
  let value = 0n
  for (const group of [...head, ...Array.from({ length: gap }, () => "0"), ...rest]) {
    if (!/^[0-9a-fA-F]{1,4}$/.test(group)) return undefined
    value = (value << 16n) | BigInt(`0x${group}`)
  }
  return value
}

const range4 = (cidr: string): Range => {
  const [base = "", bits = ""] = cidr.split("/")
  return { bits: 32, base: parse4(base) ?? 0n, shift: 32n - BigInt(bits) }
}

const range6 = (cidr: string): Range => {
  const [base = "", bits = ""] = cidr.split("/")
  return { bits: 128, base: parse6(base) ?? 0n, shift: 128n - BigInt(bits) }
}

const loopback4 = range4("127.0.0.0/8")

const closed4 = [
  "0.0.0.0/8", // this network
  "10.0.0.0/8", // private
  "100.64.0.0/10", // carrier-grade NAT; 100.100.100.200 is a metadata service
  "169.254.0.0/16", // link-local; 169.254.169.254 is a metadata service
  "168.63.129.16/32", // a cloud's platform service
  "172.16.0.0/12", // private
  "192.0.0.0/24", // protocol assignments; 192.0.0.192 is a metadata service
  "192.0.2.0/24", // documentation
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16", // private
  "198.18.0.0/15", // benchmarks
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/4", // multicast
  "240.0.0.0/4" // reserved, broadcast
].map(range4)

const mapped = range6("::ffff:0:0/96")
const nat64 = range6("64:ff9b::/96")
const globalUnicast = range6("2000::/3")

/** Parts of global unicast that are reserved, or that wrap another address. */
const closed6 = [
  "2001::/23", // protocol assignments: Teredo, benchmarks, ORCHID
  "2001:db8::/32", // documentation
  "2002::/16", // 6to4
  "3fff::/20" // documentation
].map(range6)

const reach4 = (value: bigint): Reach => {
  if (within(value, loopback4)) return "loopback"
  return closed4.some((range) => within(value, range)) ? "other" : "public"
}

/** ISATAP: an IPv4 address at the end of an IPv6 one of any network. */
const isatap = (value: bigint): boolean => ((value >> 32n) & 0xfdff_ffffn) === 0x5efen

const reach6 = (value: bigint): Reach => {
  if (value === 1n) return "loopback"
  const embedded = reach4(value & 0xffff_ffffn)
  if (within(value, mapped)) return embedded
  if (within(value, nat64)) return embedded === "public" ? "public" : "other"
  if (!within(value, globalUnicast)) return "other"
  if (isatap(value) && embedded !== "public") return "other"
  return closed6.some((range) => within(value, range)) ? "other" : "public"
}

/** The address of its usual text form, IPv6 without brackets and zone; otherwise undefined. */
export const parse = (text: string): IpAddress | undefined => {
  const v4 = parse4(text)
  if (v4 !== undefined) return { bits: 32, value: v4 }
  const v6 = parse6(text)
  if (v6 === undefined) return undefined
  return within(v6, mapped) ? { bits: 32, value: v6 & 0xffff_ffffn } : { bits: 128, value: v6 }
}

/** The range of `address/bits`, or of one address. `Failure` says why there is none. */
export const range = (text: string): Result.Result<Range, string> => {
  const [, base = "", width] = /^([^/]*)(?:\/(\d{1,3}))?$/.exec(text) ?? []
  const address = parse(base)
  const mappedIn = address?.bits === 32 && base.includes(":")
  if (address === undefined || mappedIn || Number(width ?? 0) > address.bits)
    return Result.fail("expected an IP address or a range of them, 10.0.0.0/8 for example")
  const shift = BigInt(address.bits) - BigInt(width ?? address.bits)
  if ((address.value >> shift) << shift !== address.value)
    return Result.fail(`the address has bits beyond the first ${width}`)
  return Result.succeed({ bits: address.bits, base: address.value, shift })
}

/** The reach of an address in its usual text form, IPv6 without brackets. */
export const reach = (text: string): Reach => {
  const v4 = parse4(text)
  if (v4 !== undefined) return reach4(v4)
  const v6 = parse6(text)
  return v6 === undefined ? "other" : reach6(v6)
}
