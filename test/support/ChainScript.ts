import type * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import { SigningKey } from "ethers"
import type { ChainClient, ChainRpcError, Receipt } from "../../src/application/ports/chain/ChainRpc.js"
import * as Transaction from "../../src/domain/evm/Transaction.js"
import * as Address from "../../src/domain/primitives/Address.js"
import * as Hex from "../../src/domain/primitives/Hex.js"
import type { Execute } from "./memory/ChainRpc.js"

/**
 * An echo contract. If the first word of the calldata is zero, it reverts with the calldata. Otherwise it emits the
 * remaining calldata under the first word as the topic, and returns all of it.
 */
export const echo = Address.unsafe("0xec00000000000000000000000000000000000000")

/** calldatacopy; topic = mload(0); if (topic == 0) revert(calldata); log1(rest, topic); return calldata. */
export const echoCode = Hex.unsafe("0x3660006000376000518015601957602036036020a1366000f35b366000fd")

/** Likewise for a chain without an EVM. */
export const execute: Execute = ({ data, to }) =>
  Effect.sync(() => {
    const topic = data.slice(2, 66).padEnd(64, "0")
    if (to !== echo) return { success: true, data: Hex.empty, gasUsed: 21_000n, logs: [] }
    if (/^0*$/.test(topic)) return { success: false, data, gasUsed: 30_000n, logs: [] }
    const logs = [
      { address: echo, topics: [Hex.unsafe32(`0x${topic}`)], data: Hex.unsafe(`0x${data.slice(66)}`) }
    ]
    return { success: true, data, gasUsed: 30_000n, logs }
  })

/** The first key of the development mnemonic, which anvil funds. */
export const fundedKey = new SigningKey("0xac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80")
export const funded = Address.unsafe("0xf39Fd6e51aad88F6F4ce6aB8827279cffFb92266")

/** Signs a transaction with `key` at the chain's current prices. */
export const sign = (
  chain: ChainClient,
  fields: Partial<Transaction.Transaction> & { readonly nonce: bigint },
  key = fundedKey
) =>
  Effect.map(Effect.all([chain.chainId, chain.fees]), ([chainId, { nextBaseFee, tip }]) => {
    const transaction: Transaction.Transaction = {
      chainId,
      maxPriorityFeePerGas: tip,
      maxFeePerGas: 2n * (nextBaseFee ?? 0n) + tip,
      legacy: nextBaseFee === null,
      gasLimit: 100_000n,
      to: echo,
      value: 0n,
      data: Hex.empty,
      ...fields
    }
    const signature = key.sign(Transaction.signingDigest(transaction)).serialized
    return Transaction.serialize(transaction, Hex.unsafe(signature))
  })

/** The receipt of a transaction under way: automining answers before it mines the block. */
export const minedReceipt = (
  chain: ChainClient,
  txHash: Hex.Bytes32
): Effect.Effect<Receipt, ChainRpcError | Cause.TimeoutError> =>
  Effect.filterOrElse(
    chain.receipt(txHash),
    (receipt) => receipt !== null,
    () => Effect.suspend(() => minedReceipt(chain, txHash))
  ).pipe(Effect.timeout("20 seconds"))
