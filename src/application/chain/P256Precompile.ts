import * as Effect from "effect/Effect"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import type { ChainClient } from "../ports/chain/ChainRpc.js"

/** Address of RIP-7212 and EIP-7951: wallets verify passkey signatures there first. */
const address = Address.unsafe(`0x${"0100".padStart(40, "0")}`)

/** r, s and the point's coordinates of a signature over 32 times 0x11. */
const signature = [
  "d6f2e1964e01c37cffde27f4b48f6b2f0e5b9500b0e0d100a5d4de0e3048fa9a",
  "3bd2807dadd1c28ad33b56005b7748c8deda1495bacb92da2c7a43dd7e3bbd25",
  "d65a93977caa3d1b081852ff57a79e465f1660577304baead505dd3a48589cf3",
  "50185e895372df6221ea3a137557e473fddb6755f05bd507c3c533fce9c91285"
].join("")

/** Reads the answer as wallets do: a first word that is not zero is a yes. */
const saysYes = (chain: ChainClient, digest: string) =>
  Effect.map(
    chain.call({ to: address, data: Hex.unsafe(`0x${digest.repeat(32)}${signature}`) }),
    ({ data, success }) => success && !/^0x0*$/.test(data.slice(0, 66))
  )

/** Whether the chain has code or a precompile there that accepts a correct signature. */
export const isThere = (chain: ChainClient) => saysYes(chain, "11")

/**
 * Whether it also accepts a wrong signature: then wallets accept any signature for each of their passkeys. A node that
 * refuses the call shows nothing, which counts as no.
 */
export const believesForgeries = (chain: ChainClient) =>
  Effect.catchIf(
    saysYes(chain, "12"),
    ({ reason }) => reason === "rejected" || reason === "unsupported",
    () => Effect.succeed(false)
  )
