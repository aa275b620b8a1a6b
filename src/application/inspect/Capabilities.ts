import * as Effect from "effect/Effect"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import type { ChainClient } from "../ports/chain/ChainRpc.js"

/** What nodes can do beside what every node can. Null: the node did not say. */
export interface Capabilities {
  /** `eth_simulateV1`. */
  readonly simulation: boolean | null
  /** State overrides of `eth_call`. */
  readonly overrides: boolean | null
  /** The P-256 precompile of RIP-7212 and EIP-7951. */
  readonly p256: boolean | null
}

const identity = Address.unsafe(`0x${"04".padStart(40, "0")}`)
const precompile = Address.unsafe(`0x${"0100".padStart(40, "0")}`)

/** A valid signature: digest, r, s and the point's coordinates. */
const signature = Hex.unsafe(
  `0x${[
    "11".repeat(32),
    "d6f2e1964e01c37cffde27f4b48f6b2f0e5b9500b0e0d100a5d4de0e3048fa9a",
    "3bd2807dadd1c28ad33b56005b7748c8deda1495bacb92da2c7a43dd7e3bbd25",
    "d65a93977caa3d1b081852ff57a79e465f1660577304baead505dd3a48589cf3",
    "50185e895372df6221ea3a137557e473fddb6755f05bd507c3c533fce9c91285"
  ].join("")}`
)

/** An address that nobody has, and code that returns 42. */
const nobody = Address.unsafe(`0x${"c0de".repeat(10)}`)
const answer = Hex.unsafe("0x602a60005260206000f3")

const isWord = (data: Hex.Hex, value: bigint): boolean => Hex.size(data) === 32 && BigInt(data) === value

/** Nodes that have shown that they have it: they are not asked again. */
const simulating = new WeakSet<ChainClient>()

/** Whether the node has `eth_simulateV1`; null when it did not say. */
export const simulates = (chain: ChainClient): Effect.Effect<boolean | null> =>
  Effect.suspend(() =>
    simulating.has(chain)
      ? Effect.succeed(true)
      : chain.simulate([{ to: identity, data: Hex.empty }]).pipe(
          Effect.map(() => {
            simulating.add(chain)
            return true
          }),
          Effect.catchAll(({ reason }) => Effect.succeed(reason === "unsupported" ? false : null))
        )
  )

export const ask = (chain: ChainClient): Effect.Effect<Capabilities> =>
  Effect.all(
    {
      simulation: simulates(chain),
      overrides: chain.call({ to: nobody, data: Hex.empty }, new Map([[nobody, { code: answer }]])).pipe(
        Effect.map(({ data, success }) => success && isWord(data, 42n)),
        Effect.catchAll(({ reason }) =>
          Effect.succeed(reason === "rejected" || reason === "unsupported" ? false : null)
        )
      ),
      p256: chain.call({ to: precompile, data: signature }).pipe(
        Effect.map(({ data, success }) => success && isWord(data, 1n)),
        Effect.catchAll(() => Effect.succeed(null))
      )
    },
    { concurrency: "unbounded" }
  )
