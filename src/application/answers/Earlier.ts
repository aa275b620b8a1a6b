import * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import * as Inclusions from "../chain/Inclusions.js"
import { type ChainClient, ChainRpcError } from "../ports/chain/ChainRpc.js"
import type { JournalError } from "../ports/journal/JournalError.js"
import type { OpJournal } from "../ports/journal/OpJournal.js"
import type { AccountId } from "../ports/Tenants.js"
import type { Ended, Landed } from "./Ended.js"

/** Outcomes of ops that were already done when they came: posted before, or landed in any transaction. */

export interface Place {
  readonly accountId: AccountId
  readonly chainId: bigint
  readonly chain: ChainClient
  readonly entryPoint: Address
}

interface Op {
  readonly index: number
  readonly userOpHash: Bytes32
}

const landedAs = (
  { index, userOpHash }: Op,
  { revertData, success, txHash }: Inclusions.OpOutcome
): readonly [number, Landed] => [index, { userOpHash, success, txHash, revertData, returned: null }]

const landedElsewhere = ({ chain, entryPoint }: Place, ops: ReadonlyArray<Op>) =>
  Effect.gen(function* () {
    const head = yield* chain.block("latest")
    const hashes = ops.map(({ userOpHash }) => userOpHash)
    const found = yield* Inclusions.find(chain, entryPoint, hashes, head?.number ?? 0n)
    return yield* Effect.forEach(ops, (op) => {
      const outcome = found.get(op.userOpHash)
      return outcome === undefined
        ? new ChainRpcError({
            reason: "unreachable",
            origin: chain.origin,
            message: "it does not show an op that it has shown"
          })
        : Effect.succeed(landedAs(op, outcome))
    })
  })

export const add = (
  opJournal: Pick<OpJournal["Service"], "findOp">,
  place: Place,
  ops: ReadonlyArray<Op>,
  ended: Ended
): Effect.Effect<Ended, ChainRpcError | JournalError> =>
  Effect.gen(function* () {
    const { accountId, chainId } = place
    const landed = new Map(ended.landed)
    const others: Array<Op> = []
    for (const op of ops.filter(({ index }) => ended.existing.has(index))) {
      const before = yield* opJournal.findOp(accountId, chainId, op.userOpHash)
      if (before?.state !== "settled" || before.txHash === null) others.push(op)
      else {
        const { revertData, success, txHash } = before
        landed.set(...landedAs(op, { success: success === true, txHash, revertData }))
      }
    }
    if (others.length > 0)
      for (const [index, outcome] of yield* landedElsewhere(place, others)) landed.set(index, outcome)
    const txHashes = new Set([...ended.txHashes, ...[...landed.values()].map(({ txHash }) => txHash)])
    return { ...ended, landed, txHashes: [...txHashes] }
  })
