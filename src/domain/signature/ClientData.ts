/**
 * Places of the members of a `clientDataJSON`, by the rule of the wallets (contracts/src/ClientData.sol). A string that
 * begins while only one bracket is open, a curly one, is a member of the object itself, or is in a member's place. Text
 * behind the wanted members is not read.
 */

const [quote, backslash, comma] = [0x22, 0x5c, 0x2c] as const
const [openObject, closeObject, openArray, closeArray] = [0x7b, 0x7d, 0x5b, 0x5d] as const

/** Space, tab, line feed, carriage return. */
const isWhite = (byte: number): boolean => byte === 0x20 || byte === 0x09 || byte === 0x0a || byte === 0x0d

/** The byte behind the string that begins here: behind the next quote that has no backslash in front of it. */
const behindString = (bytes: Uint8Array, begin: number): number => {
  let at = begin + 1
  while (at < bytes.length && bytes[at] !== quote) at += bytes[at] === backslash ? 2 : 1
  return at + 1
}

/** Bytes at which strings of the outermost object begin, in order, up to the end of the object. */
export const outermostStrings = (bytes: Uint8Array): ReadonlyArray<number> => {
  const found: Array<number> = []
  let depth = 0
  for (let at = 0; at < bytes.length; ) {
    const byte = bytes[at] ?? 0
    if (byte === quote) {
      if (depth === 0) break
      if (depth === 1) found.push(at)
      at = behindString(bytes, at)
      continue
    }
    if (byte === openObject || (byte === openArray && depth > 0)) depth += 1
    else if (byte === closeObject || byte === closeArray) {
      if (depth < 2) break
      depth -= 1
    } else if (depth === 0 && !isWhite(byte)) break
    at += 1
  }
  return found
}

/**
 * Cost of the characters that wallets read one by one, up to the later of both indexes. Unit: a character outside
 * strings; a string costs three, an escape in it two. 0 when the client data begin as the specification says.
 */
export const steps = (bytes: Uint8Array, typeIndex: bigint, challengeIndex: bigint): number => {
  if (typeIndex === first && challengeIndex === second) return 0
  const last = Math.min(Math.max(Number(typeIndex), Number(challengeIndex)), bytes.length - 1)
  let count = 0
  for (let at = 0; at <= last; ) {
    if (bytes[at] !== quote) {
      count += 1
      at += 1
      continue
    }
    const behind = behindString(bytes, at)
    count += 3
    for (let inside = at + 1; inside < behind; inside += 1)
      if (bytes[inside] === backslash) {
        count += 2
        inside += 1
      }
    at = behind
  }
  return count
}

/** Beginning of every serialisation by the WebAuthn specification: `{"type":"webauthn.get","challenge":"`. */
const [first, second] = [1n, 23n] as const

/**
 * Whether the strings at both indexes, `"type":"webauthn.get"` and `"challenge":"..."`, are members of the outermost
 * object.
 */
export const areMembers = (bytes: Uint8Array, typeIndex: bigint, challengeIndex: bigint): boolean => {
  if (typeIndex === first && challengeIndex === second)
    return bytes[0] === openObject && bytes[Number(second) - 1] === comma
  const strings = new Set(outermostStrings(bytes).map(BigInt))
  return strings.has(typeIndex) && strings.has(challengeIndex)
}
