import * as Result from "effect/Result"
import * as IpAddress from "./IpAddress.js"

/**
 * Which `Host` headers are meant: one name, all names below one (`.svc.cluster.local`), or the addresses of a network.
 * A network matches only addresses in the header itself. No name is resolved: its owner may let it resolve to anything.
 */
export type HostPattern =
  | { readonly _tag: "name"; readonly name: string }
  | { readonly _tag: "suffix"; readonly suffix: string }
  | { readonly _tag: "network"; readonly range: IpAddress.Range }

/** Letters, digits, hyphens and underscores; a last label of only digits makes it a malformed address. */
const isName = (text: string): boolean =>
  text.length <= 253 &&
  text.split(".").every((label) => /^[a-z0-9_-]{1,63}$/.test(label)) &&
  !/(^|\.)[0-9]+$/.test(text)

/** Names are equal with a dot at their end, and in any case of letters. */
const plain = (text: string): string => text.toLowerCase().replace(/(?<=[^.])\.$/, "")

/** An IPv6 address is written with and without brackets. */
const unbracketed = (text: string): string => text.replace(/^\[([^\]]*)\](?=$|\/)/, "$1")

/** The likely intention behind a text that no header can match. */
const refusal = (text: string): string => {
  if (text.includes("*"))
    return 'a * is compared as it is; ".example.internal" stands for every name below example.internal'
  if (/^[a-z][a-z0-9+.-]*:\/\//i.test(text)) return "a Host header has no scheme or path: write only the host"
  if (/^[0-9a-f.:[\]]+\/[0-9]+$/i.test(text))
    return "expected a range of IP addresses, 10.0.0.0/8 for example"
  if (/:[0-9]*$/.test(text)) return "the port is not compared: write only the host"
  if (text.includes("/")) return "a Host header has no path: write only the host"
  if (/^\.?[0-9][0-9.]*$/.test(text)) return "it is not an IP address, and no name ends in a number"
  if (/[^\0-\x7f]/.test(text)) {
    const ascii = URL.canParse(`http://${text}`) ? new URL(`http://${text}`).hostname : "xn--..."
    return `headers have names in ASCII: write ${ascii}`
  }
  return "expected a name, a suffix of names (.svc.cluster.local), an IP address or a range of them (10.0.0.0/8)"
}

/** `Failure` says why no `Host` header can match the text. */
export const parse = (text: string): Result.Result<HostPattern, string> => {
  const bare = unbracketed(text)
  if (IpAddress.parse(bare.split("/")[0] ?? "") !== undefined)
    return Result.mapBoth(IpAddress.range(bare), {
      onFailure: (message) => message,
      onSuccess: (range) => ({ _tag: "network", range })
    })
  const name = plain(text)
  if (isName(name)) return Result.succeed({ _tag: "name", name })
  if (name.startsWith(".") && isName(name.slice(1))) return Result.succeed({ _tag: "suffix", suffix: name })
  return Result.fail(refusal(text))
}

/** Whether the header meets one of the patterns. Its port is ignored: the connection's port counts. */
export const matches = (patterns: ReadonlyArray<HostPattern>, header: string): boolean => {
  const host = header.replace(/:[0-9]*$/, "")
  const address = IpAddress.parse(unbracketed(host))
  if (address !== undefined)
    return patterns.some((each) => each._tag === "network" && IpAddress.contains(each.range, address))
  const name = plain(host)
  if (!isName(name)) return false
  return patterns.some((each) =>
    each._tag === "suffix"
      ? name.endsWith(each.suffix) && name.length > each.suffix.length
      : each._tag === "name" && each.name === name
  )
}
