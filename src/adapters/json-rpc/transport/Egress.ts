import { promises as dns } from "node:dns"
import { isIP, type LookupFunction } from "node:net"
import * as Result from "effect/Result"
import * as IpAddress from "../../../domain/net/IpAddress.js"

/** Who named the URL. */
export type Trust = "caller" | "operator"

/** All addresses of a host name. */
export type Resolve = (hostname: string) => Promise<ReadonlyArray<string>>

export interface Rules {
  /** Whether callers may reach this machine itself. For development. */
  readonly allowLoopback: boolean
  /** Networks that are not public and that callers may reach all the same. */
  readonly allow: ReadonlyArray<IpAddress.Range>
  /** Further ones that a single account may reach, by its id. */
  readonly accounts: ReadonlyMap<string, ReadonlyArray<IpAddress.Range>>
  /** How the names that callers use are resolved. */
  readonly resolve: Resolve
}

/** Where a client connects to. Only `origin` may be shown: keys sit in paths. */
export interface Target {
  readonly trust: Trust
  /** The account that named it; empty for the operator. Nothing is shared between two scopes, connections included. */
  readonly scope: string
  /** Scheme, host and port that connections are made to; the host is never written with a dot at its end. */
  readonly connection: string
  /** Path and query. */
  readonly path: string
  readonly origin: string
  /** The URL in its normal form. */
  readonly href: string
}

/** An address that callers may not reach. Travels through node's connection code as an error. */
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
 * The target of a URL. `invalidUrl`: not an http(s) URL, or one with user information. `forbidden`: it spells out
 * an address that this caller may not reach; a name is judged when it is connected to.
 *
 * The URL parser has already turned short, octal, hexadecimal and integer spellings of IPv4 into the usual one.
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
 * Asks the name servers directly: the system's resolver would block a thread that the whole process shares for as
 * long as a caller's name server likes, and would find private names of the host's own files.
 */
export const resolve: Resolve = async (hostname) => {
  const resolver = new dns.Resolver({ timeout: 2_000, tries: 2 })
  const found = await Promise.allSettled([resolver.resolve4(hostname), resolver.resolve6(hostname)])
  const addresses = found.flatMap((answer) => (answer.status === "fulfilled" ? answer.value : []))
  if (addresses.length > 0) return addresses
  throw Object.assign(new Error("the name has no address"), { code: "ENOTFOUND" })
}

/** RFC 6761: these names are this machine, whatever a name server says. */
const addressesOf = (rules: Rules, hostname: string): Promise<ReadonlyArray<string>> =>
  localhost.test(hostname) ? Promise.resolve(["127.0.0.1", "::1"]) : rules.resolve(hostname)

/**
 * The resolution of a caller's name as part of connecting: every address is checked, one bad one spoils the name,
 * and the connection goes to one of exactly these. No second resolution lies between check and use. A kept-alive
 * connection was checked when it was made.
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
