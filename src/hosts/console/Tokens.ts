import * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Keccak from "../../domain/primitives/Keccak.js"
import { Lru } from "../../domain/primitives/Lru.js"
import * as Words from "../../domain/primitives/Words.js"
import type { Data } from "./Data.js"
import { units } from "./Page.js"

/** Symbols and decimals of tokens from the operator's node: labels for people, never facts. */
export interface Token {
  readonly symbol: string
  readonly decimals: number
}

const known = new Lru<string, Token | null>(1_000)

const [symbol, decimals] = [Keccak.selector("symbol()"), Keccak.selector("decimals()")]

/** Printable ASCII of an ABI string or a bytes32, at most 12 characters; null: there is none. */
const textOf = (data: Hex.Hex): string | null => {
  const bytes = Buffer.from(data.slice(2), "hex")
  const length = bytes.length >= 64 ? Number(BigInt(`0x${bytes.subarray(32, 64).toString("hex")}`)) : 0
  const raw = bytes.length >= 96 && length <= 64 ? bytes.subarray(64, 64 + length) : bytes.subarray(0, 32)
  const text = raw
    .toString("latin1")
    .replace(/[^!-~]/g, "")
    .slice(0, 12)
  return text === "" ? null : text
}

export const of = (
  { call }: Pick<Data, "call">,
  chainId: bigint,
  address: Address
): Effect.Effect<Token | null> =>
  Effect.suspend(() => {
    const key = `${chainId} ${address}`
    const found = known.get(key)
    if (found !== undefined) return Effect.succeed(found)
    return Effect.map(
      Effect.all(
        [call(chainId, address, Words.call(symbol, [])), call(chainId, address, Words.call(decimals, []))],
        { concurrency: 2 }
      ),
      ([name, size]) => {
        const text = name === null ? null : textOf(name)
        const places = size !== null && Hex.size(size) === 32 ? Number(BigInt(size) % 256n) : null
        const token =
          text === null || places === null || places > 36 ? null : { symbol: text, decimals: places }
        known.set(key, token)
        return token
      }
    )
  })

/** An amount with its token's symbol; least units where the token is unknown. */
export const amount = (value: bigint, token: Token | null): string =>
  token === null ? value.toString() : `${units(value, token.decimals, 6)} ${token.symbol}`
