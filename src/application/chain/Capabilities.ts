import * as Effect from "effect/Effect"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import type { ChainClient } from "../ports/chain/ChainRpc.js"
import * as P256Precompile from "./P256Precompile.js"

/** Optional features of a node. Null: the node did not say. */
export interface Capabilities {
  readonly simulation: boolean | null
  readonly overrides: boolean | null
  /** The P-256 precompile of RIP-7212 and EIP-7951. `broken`: the code in its place accepts wrong signatures too. */
  readonly p256: "there" | "absent" | "broken" | null
}

const identity = Address.unsafe(`0x${"04".padStart(40, "0")}`)

/** An unused address, and code that returns 42. */
const nobody = Address.unsafe(`0x${"c0de".repeat(10)}`)
const answer = Hex.unsafe("0x602a60005260206000f3")

const isWord = (data: Hex.Hex, value: bigint): boolean => Hex.size(data) === 32 && BigInt(data) === value

/** Nodes that have shown that they have it; they are not queried again. */
const simulating = new WeakSet<ChainClient>()

/** Whether the node has `eth_simulateV1`; null when it did not say. */
export const simulates = (chain: ChainClient) =>
  Effect.suspend(() =>
    simulating.has(chain)
      ? Effect.succeed(true)
      : chain.simulate([{ to: identity, data: Hex.empty }]).pipe(
          Effect.map(() => {
            simulating.add(chain)
            return true
          }),
          Effect.catch(({ reason }) => Effect.succeed(reason === "unsupported" ? false : null))
        )
  )

const p256 = (chain: ChainClient) =>
  Effect.zipWith(
    P256Precompile.believesForgeries(chain),
    P256Precompile.isThere(chain),
    (broken, there): Capabilities["p256"] => (broken ? "broken" : there ? "there" : "absent"),
    { concurrent: true }
  ).pipe(Effect.catch(() => Effect.succeed(null)))

export const ask = (chain: ChainClient) =>
  Effect.all(
    {
      simulation: simulates(chain),
      overrides: chain.call({ to: nobody, data: Hex.empty }, new Map([[nobody, { code: answer }]])).pipe(
        Effect.map(({ data, success }) => success && isWord(data, 42n)),
        Effect.catch(({ reason }) =>
          Effect.succeed(reason === "rejected" || reason === "unsupported" ? false : null)
        )
      ),
      p256: p256(chain)
    },
    { concurrency: "unbounded" }
  )
