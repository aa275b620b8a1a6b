import * as Effect from "effect/Effect"
import { expect } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import type { TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import type { Stack } from "./Stack.js"

export type Runtime = ReturnType<Stack["begin"]>

export interface PoolTransaction {
  readonly hash: string
  readonly nonce: string
  readonly to: string
  readonly value: string
  readonly input: string
  readonly maxFeePerGas: string
  readonly maxPriorityFeePerGas: string
}

/** Operations that are counted on the chain, and what the chain and the journal say of the lane of a stack's signer. */
export const make = async (stack: Stack) => {
  const counter = Address.unsafe(await stack.counter.getAddress())
  const { address } = stack.signer
  const lane = { chainId: BigInt(stack.anvil.chainId), signer: Address.unsafe(address) }

  const hit = (salt: string, id: string): Operation => ({
    salt,
    walletCustody: 1,
    to: counter,
    funcSignature: "hit(bytes32)",
    funcParams: [id]
  })
  const pool = async (): Promise<ReadonlyArray<PoolTransaction>> => {
    const { pending } = (await stack.provider.send("txpool_content", [])) as {
      readonly pending: Readonly<Record<string, Readonly<Record<string, PoolTransaction>>>>
    }
    return Object.entries(pending).flatMap(([from, byNonce]) =>
      from.toLowerCase() === address.toLowerCase() ? Object.values(byNonce) : []
    )
  }
  const requestOf = (runtime: Runtime, requestId: string) =>
    runtime.runPromise(
      Effect.flatMap(RequestJournal, (requestJournal) => Effect.orDie(requestJournal.request(requestId)))
    )

  return {
    counter,
    hit,
    execute: (caller: Caller, ...operations: ReadonlyArray<Operation>) =>
      ExecuteOperations.run(caller, { operations, settings: stack.settings }),
    countOf: async (id: string): Promise<number> => Number(await stack.counter.getFunction("count")(id)),
    /** What the signer has in the node's pool, ready to be mined. */
    pool,
    /** Waits until that are so many, and gives them. */
    pooled: async (count: number) => {
      await expect.poll(async () => (await pool()).length, { timeout: 15_000 }).toBe(count)
      return pool()
    },
    nonce: () => stack.provider.getTransactionCount(address, "latest"),
    mine: () => stack.provider.send("evm_mine", []),
    automine: (on: boolean) => stack.provider.send("evm_setAutomine", [on]),
    /** The base fee of the next block, which is mined. */
    baseFee: async (wei: bigint) => {
      await stack.provider.send("anvil_setNextBlockBaseFeePerGas", [`0x${wei.toString(16)}`])
      await stack.provider.send("evm_mine", [])
    },
    /** Somebody else uses the signer's key. */
    foreign: async (nonce: number, gwei = 400n): Promise<string> => {
      const raw = await stack.signer.signTransaction({
        type: 2,
        chainId: stack.anvil.chainId,
        nonce,
        to: address,
        gasLimit: 21_000,
        maxFeePerGas: gwei * 10n ** 9n,
        maxPriorityFeePerGas: 90n * 10n ** 9n
      })
      return stack.provider.send("eth_sendRawTransaction", [raw])
    },
    requestOf,
    /** The stored answer, waited for. */
    answerOf: async (runtime: Runtime, requestId: string) => {
      await expect
        .poll(async () => (await requestOf(runtime, requestId))?.outcome ?? null, { timeout: 20_000 })
        .not.toBeNull()
      return JSON.parse((await requestOf(runtime, requestId))?.outcome ?? "{}")
    },
    openOf: (runtime: Runtime): Promise<ReadonlyArray<TransactionRecord>> =>
      runtime.runPromise(
        Effect.flatMap(TransactionJournal, (transactionJournal) =>
          Effect.orDie(transactionJournal.openOf(lane))
        )
      )
  }
}

/** Tells when the service knows the height above which blocks count for its waiting transaction. */
export const watchHeights = () => {
  let looks = 0
  return {
    onExchange: (methods: ReadonlyArray<string>) => {
      // The latest and the pending nonce; the height came with the receipts before.
      if (methods.filter((name) => name === "eth_getTransactionCount").length === 2) looks += 1
    },
    /** Waits for two looks: the second begins when the first has had its answer. */
    noted: async () => {
      const before = looks
      await expect.poll(() => looks, { timeout: 20_000 }).toBeGreaterThan(before + 1)
    }
  }
}

export type Hits = Awaited<ReturnType<typeof make>>
