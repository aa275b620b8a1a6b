import * as Effect from "effect/Effect"
import * as Revert from "../../domain/abi/Revert.js"
import type { Dependencies } from "../../domain/erc4337/Dependencies.js"
import * as Outcome from "../../domain/erc4337/Outcome.js"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Ledger from "../../domain/wallet/Ledger.js"
import { dependencyFailed, refuseAll, revertDataOf } from "../failures/Elements.js"
import type { Failure } from "../failures/Failure.js"
import type { Receipt } from "../ports/chain/ChainRpc.js"
import type { Decoding } from "../request/Decoding.js"
import * as EventLoop from "../runtime/EventLoop.js"
import type { Ended } from "./Ended.js"
import type { Created, CreatedAccount, Executed, OperationResult, Unstuck } from "./TransactionResult.js"

/** Makes the answers of writing endpoints from the outcomes of their ops. */

export interface Outcomes extends Pick<Ended, "existing" | "failed" | "landed" | "note"> {
  /** The transactions that concern the request, oldest first, with only the logs of its own ops. */
  readonly receipts: ReadonlyArray<Receipt>
}

/** For an op on the chain without return data: only a trace would show the reason. */
const silent = "reverted without a reason, or ran out of gas"

/** The fields that every transaction result shares. All empty when no transaction was sent. */
export const transactionFields = (receipts: ReadonlyArray<Receipt>, decoding: Decoding) => {
  const last = receipts.at(-1)
  const found = receipts.flatMap(({ logs }) => logs)
  return Effect.map(EventLoop.map(found, decoding.log), (logs) => ({
    txHash: last?.txHash ?? "",
    cumulativeGasUsed: Number(last?.cumulativeGasUsed ?? 0n),
    gasUsed: Number(receipts.reduce((sum, { gasUsed }) => sum + gasUsed, 0n)),
    effectiveGasPrice: (last?.effectiveGasPrice ?? 0n).toString(),
    logs,
    txHashes: receipts.map(({ txHash }) => txHash)
  }))
}

export type Decode = (index: number, returned: Hex.Hex) => unknown

/** One element's result. Return data is from the last simulation before sending. */
const element = (
  index: number,
  outcomes: Outcomes,
  decode: Decode,
  revert: (data: Hex.Hex) => string
): OperationResult => {
  const landed = outcomes.landed.get(index)
  const failure = outcomes.failed.get(index)
  if (landed === undefined)
    return {
      userOpHash: null,
      success: false,
      error: failure?.message ?? null,
      result: null,
      txHash: null,
      ...revertDataOf(failure)
    }
  const reverted = landed.revertData ?? Hex.empty
  const error = landed.success ? null : reverted === Hex.empty ? silent : revert(reverted)
  const undecoded = error === null ? null : Revert.unreadableData(reverted, error)
  return {
    userOpHash: landed.userOpHash,
    success: landed.success,
    error,
    result: landed.success && landed.returned !== null ? (decode(index, landed.returned) ?? null) : null,
    txHash: landed.txHash,
    ...(undecoded !== null && { data: undecoded })
  }
}

/** Decodes an element's revert data; a failed dependency comes first. */
const reverted =
  (index: number, { landed }: Outcomes, decoding: Decoding, dependencies: Dependencies) =>
  (data: Hex.Hex): string => {
    const on = dependencies[index] ?? null
    return on !== null && Ledger.failedKey(data) !== null && landed.get(on)?.success !== true
      ? dependencyFailed(on).message
      : decoding.revert(data)
  }

/** The answer of the executing endpoints: a transaction result, or 422 when no transaction was sent. */
export const execution = (
  elements: ReadonlyArray<number>,
  outcomes: Outcomes,
  decode: Decode,
  decoding: Decoding,
  dependencies: Dependencies = []
): Effect.Effect<Executed, Failure> =>
  Effect.gen(function* () {
    const results = yield* EventLoop.map(elements, (index) =>
      element(index, outcomes, decode, reverted(index, outcomes, decoding, dependencies))
    )
    const returnData = results.map((result, index) => ({ [String(index)]: result }))
    if (outcomes.receipts.length === 0 && outcomes.landed.size === 0)
      return yield* Effect.fail(refuseAll("operations", outcomes.failed, { returnData }))
    return {
      status: Outcome.executeStatus(results.map(({ success }) => success)),
      returnData,
      ...(yield* transactionFields(outcomes.receipts, decoding))
    }
  })

export const creation = (
  accounts: ReadonlyArray<{
    readonly index: number
    readonly salt: string | null
    readonly wallet: Address
  }>,
  { existing, failed, landed, receipts }: Outcomes,
  decoding: Decoding
): Effect.Effect<Created, Failure> =>
  Effect.gen(function* () {
    const creationOf = (index: number): Outcome.Creation => {
      if (landed.get(index)?.success === true) return "deployed"
      return existing.has(index) ? "existed" : "failed"
    }
    const returnData = accounts.map(({ index, salt, wallet }) => {
      const failure = failed.get(index)
      const element: CreatedAccount = {
        salt: salt ?? "",
        wallet,
        ...(failure && { error: failure.message, ...revertDataOf(failure) })
      }
      return { [String(index)]: element }
    })
    if (receipts.length === 0 && failed.size > 0)
      return yield* Effect.fail(refuseAll("accounts", failed, { returnData }))
    return {
      status: Outcome.createStatus(accounts.map(({ index }) => creationOf(index))),
      returnData,
      ...(yield* transactionFields(receipts, decoding))
    }
  })

/** The answer of `/unstuck`, with the outcome of the first replacement. */
export const unstuck = (
  receipt: Receipt | null,
  outcome: Pick<Unstuck, "replaced" | "unknown">,
  decoding: Decoding
): Effect.Effect<Unstuck> =>
  Effect.map(transactionFields(receipt === null ? [] : [receipt], decoding), (fields) => ({
    ...fields,
    ...outcome,
    status: receipt === null ? 2 : receipt.success ? 1 : 0,
    returnData: []
  }))

/** The receipts in block order, with only the logs of these ops. */
export const receiptsOf = (
  entryPoint: Address,
  receipts: ReadonlyArray<Receipt>,
  own: ReadonlySet<Hex.Bytes32>
): ReadonlyArray<Receipt> =>
  [...receipts]
    .sort((a, b) => (a.blockNumber < b.blockNumber ? -1 : a.blockNumber > b.blockNumber ? 1 : 0))
    .map((receipt) => ({ ...receipt, logs: Outcome.logsOf(entryPoint, receipt.logs, own) }))
