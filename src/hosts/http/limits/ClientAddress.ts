import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import * as Option from "effect/Option"
import * as IpAddress from "../../../domain/net/IpAddress.js"

/** Most entries of X-Forwarded-For that are looked at: no honest chain of proxies is longer. */
const maxHops = 32

/** The address of a socket, which may have a zone; undefined: it has none. */
export const parse = (remoteAddress: string | null): IpAddress.IpAddress | undefined =>
  IpAddress.parse((remoteAddress ?? "").replace(/%.*$/s, ""))

/** The name of an IPv4 address, or of an IPv6 network of 64 bits, which is what one client has. */
export const name = ({ bits, value }: IpAddress.IpAddress): string =>
  bits === 32 ? `4 ${value}` : `6 ${value >> 64n}`

/** An address in an entry of X-Forwarded-For, which some proxies write with a port, IPv6 in brackets then. */
const entry = (text: string): IpAddress.IpAddress | undefined => {
  const trimmed = text.trim()
  const [, inBrackets, withPort] = /^(?:\[([^\]]*)\](?::\d{1,5})?|([\d.]+):\d{1,5})$/.exec(trimmed) ?? []
  return IpAddress.parse(inBrackets ?? withPort ?? trimmed)
}

/**
 * Whose request it is: the socket's address, or, where that is one of the operator's proxies, the rightmost address of
 * X-Forwarded-For that is not. Whatever stands left of it was written by that client itself and is not believed; an
 * entry that is no address ends the search at the proxy which passed it on.
 * The `name` of it; null: the transport does not tell.
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
