import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"
import * as IpAddress from "../../../domain/net/IpAddress.js"

/** Most entries of X-Forwarded-For that are read: no honest chain of proxies is longer. */
const maxHops = 32

/** Parses a socket's address, dropping its zone; undefined when it has none. */
export const parse = (remoteAddress: string | null): IpAddress.IpAddress | undefined =>
  IpAddress.parse((remoteAddress ?? "").replace(/%.*$/s, ""))

/** Name of an IPv4 address, or of an IPv6 /64 network, the share of one client. */
export const name = ({ bits, value }: IpAddress.IpAddress): string =>
  bits === 32 ? `4 ${value}` : `6 ${value >> 64n}`

/** Parses an entry of X-Forwarded-For. Some proxies add a port, with IPv6 in brackets. */
const entry = (text: string): IpAddress.IpAddress | undefined => {
  const trimmed = text.trim()
  const [, inBrackets, withPort] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/.exec(trimmed) ?? []
  return IpAddress.parse(inBrackets ?? withPort ?? trimmed)
}

/**
 * The client of a request: the socket's address or, for one of the operator's proxies, the rightmost X-Forwarded-For
 * address of another host. The client wrote the entries to the left, so they are not trusted; an invalid entry ends the
 * search at the proxy that passed it on. Returns the address's `name`; null when the transport has no address.
 */
export const of = (
  { headers, remoteAddress }: Pick<HttpServerRequest, "headers" | "remoteAddress">,
  trusted: ReadonlyArray<IpAddress.Range>
): string | null => {
  const socket = parse(Option.getOrNull(remoteAddress))
  if (socket === undefined) return null
  const isProxy = (address: IpAddress.IpAddress) =>
    trusted.some((range) => IpAddress.contains(range, address))
  let client = socket
  if (isProxy(client)) {
    const entries = (headers["x-forwarded-for"] ?? "").split(",").slice(-maxHops)
    for (const text of entries.reverse()) {
      const next = entry(text)
      if (next === undefined) break
      client = next
      if (!isProxy(next)) break
    }
  }
  return name(client)
}
