import { promises as dns } from "node:dns"
import { isIP, type LookupFunction } from "node:net"
import * as Result from "effect/Result"
import * as IpAddress from "../../../domain/net/IpAddress.js"

/** Author of the URL. */
export type Trust = "caller" | "operator"

/** All addresses of a host name. */
export type Resolve = (hostname: string) => Promise<ReadonlyArray<string>>

export interface Rules {
  /** Whether callers may reach this machine itself. For development. */
  readonly allowLoopback: boolean
  /** Private networks that callers may reach. */
  readonly allow: ReadonlyArray<IpAddress.Range>
  /** Further networks that one account may reach, by account id. */
  readonly accounts: ReadonlyMap<string, ReadonlyArray<IpAddress.Range>>
  readonly resolve: Resolve
}

/** Destination of a client. Show only `origin`: paths contain keys. */
export interface Target {
  readonly trust: Trust
  /** Account that named the URL; empty for the operator. Scopes share nothing, connections included. */
  readonly scope: string
  /** Scheme, host and port to connect to; the host has no trailing dot. */
  readonly connection: string
  readonly path: string
  readonly origin: string
  readonly href: string
}

/** An address that callers may not reach. Node's connection code passes it on as an error. */
export class Blocked extends Error {
  override readonly name = "Blocked"
}

const maxUrlLength = 2_048

const localhost = /(?:^|\.)localhost$/

const admits = (rules: Rules, account: string, address: string): boolean => {
  const reach = IpAddress.reach(address)
  if (reach === "public" || (reach === "loopback" && rules.allowLoopback)) return true
  const parsed = IpAddress.parse(address)
  if (parsed === undefined) return false
  const within = (range: IpAddress.Range) => IpAddress.contains(range, parsed)
  return rules.allow.some(within) || (rules.accounts.get(account) ?? []).some(within)
}

/**
 * Parses a URL. `invalidUrl`: it is not an http(s) URL, or has user information. `forbidden`: it contains an address that
 * this caller may not reach; a name is checked on connection.
 *
 * The URL parser normalises short, octal, hexadecimal and integer spellings of IPv4.
 */
export const target = (
  text: string,
  trust: Trust,
  rules: Rules,
  scope = ""
): Result.Result<Target, "invalidUrl" | "forbidden"> => {
  if (text.length > maxUrlLength || !URL.canParse(text)) return Result.fail("invalidUrl")
  const url = new URL(text)
  if (url.protocol !== "https:" && url.protocol !== "http:") return Result.fail("invalidUrl")
  if (url.username !== "" || url.password !== "") return Result.fail("invalidUrl")
  const host = url.hostname.replace(/\.$/, "")
  const hostname = host.replace(/^\[(.*)\]$/, "$1")
  if (hostname === "") return Result.fail("invalidUrl")
  if (trust === "caller") {
    if (isIP(hostname) !== 0 && !admits(rules, scope, hostname)) return Result.fail("forbidden")
    if (localhost.test(hostname) && !rules.allowLoopback) return Result.fail("forbidden")
  }
  url.hash = ""
  return Result.succeed({
    trust,
    scope,
    connection: `${url.protocol}//${host}${url.port === "" ? "" : `:${url.port}`}`,
    path: `${url.pathname}${url.search}`,
    origin: url.origin,
    href: url.href
  })
}

/**
 * Queries the name servers directly. The system's resolver would block a shared thread for as long as a caller's name
 * server takes, and would resolve private names from the hosts file.
 */
export const resolve: Resolve = async (hostname) => {
  const resolver = new dns.Resolver({ timeout: 2_000, tries: 2 })
  const found = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
  const addresses = found.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []))
  if (addresses.length > 0) return addresses
  throw Object.assign(new Error("the name has no address"), { code: "ENOTFOUND" })
}

/** RFC 6761: localhost names mean this machine, whatever a name server returns. */
const addressesOf = (rules: Rules, hostname: string): Promise<ReadonlyArray<string>> =>
  localhost.test(hostname) ? Promise.resolve(["127.0.0.1", "::1"]) : rules.resolve(hostname)

/**
 * Resolves a caller's name as part of connecting. One forbidden address rejects the name, and the connection goes to a
 * checked address, with no second resolution between check and use. A kept-alive connection was checked when it opened.
 */
export const lookup =
  (rules: Rules, account: string): LookupFunction =>
  (hostname, options, callback) => {
    addressesOf(rules, hostname).then(
      (found) => {
        const addresses = found.map((address) => ({ address, family: isIP(address) }))
        if (!found.every((address) => admits(rules, account, address)))
          return callback(new Blocked("the address is not allowed"), "", 0)
        const usable = addresses.filter(
          ({ family }) => options.family === undefined || options.family === 0 || options.family === family
        )
        const [first] = usable
        if (first === undefined)
          return callback(Object.assign(new Error("no address"), { code: "ENOTFOUND" }), "", 0)
        return options.all === true ? callback(null, usable) : callback(null, first.address, first.family)
      },
      (error: unknown) => callback(error instanceof Error ? error : new Error("resolution failed"), "", 0)
    )
  }
