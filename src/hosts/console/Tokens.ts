import * as Effect from "effect/Effect"
import * as Token from "../../domain/evm/Token.js"
import type { Address } from "../../domain/primitives/Address.js"
import { Lru } from "../../domain/primitives/Lru.js"
import type { Data } from "./Data.js"
import { units } from "./Page.js"

const known = new Lru<string, Token.Label | null>(1_000)

/** The token's label from the operator's node: for people, never a fact. */
export const of = (
  { call }: Pick<Data, "call">,
  chainId: bigint,
  address: Address
): Effect.Effect<Token.Label | null> =>
  Effect.suspend(() => {
    const key = `${chainId} ${address}`
    const found = known.get(key)
    if (found !== undefined) return Effect.succeed(found)
    return Effect.map(
      Effect.all([call(chainId, address, Token.calls.symbol), call(chainId, address, Token.calls.decimals)], {
        concurrency: 2
      }),
      ([symbol, decimals]) => {
        const token = symbol === null || decimals === null ? null : Token.labelOf(symbol, decimals)
        known.set(key, token)
        return token
      }
    )
  })

/** An amount with its token's symbol; least units where the token is unknown. */
export const amount = (value: bigint, token: Token.Label | null): string =>
  token === null ? value.toString() : `${units(value, token.decimals, 6)} ${token.symbol}`
