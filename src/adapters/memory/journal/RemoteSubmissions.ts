import type * as Context from "effect/Context"
import type { Journal } from "../../../application/ports/journal/Journal.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import * as State from "./JournalState.js"
import { answer, done, fits, outOfRange, refuse, step } from "./JournalStep.js"

type Service = Context.Tag.Service<typeof Journal>

export const submitRemotely =
  (state: State.State): Service["submitRemotely"] =>
  ({ node, ops: handed, requestId, since }) =>
    step(() => {
      if (!fits(64, [since])) return refuse(outOfRange)
      const ops = handed.map(({ index, signed }) => ({
        op: State.elements(state, requestId, [index])[0],
        signed
      }))
      for (const { op } of ops) {
        if (op === undefined) return refuse("an op was not accepted")
        if (op.userOpHash === null) return refuse("an op has no hash")
        if (op.state === "settled" || State.isCarried(op))
          return refuse("an op is final, or is in a signed transaction")
      }
      for (const { op, signed } of ops)
        if (op?.state === "accepted") {
          State.moveOp(state, op, "sent", null)
          op.handover = { node, since, signed }
        }
      return done
    })

export const revokeRemote =
  (state: State.State): Service["revokeRemote"] =>
  (requestId, indexes) =>
    step(() => {
      for (const op of State.elements(state, requestId, indexes))
        if (op.state === "sent" && !State.isCarried(op)) {
          State.moveOp(state, op, "accepted", null)
          op.handover = null
        }
      return done
    })

const named = (state: State.State, authority: Address, chainId: bigint, hashes: ReadonlyArray<Bytes32>) =>
  hashes.flatMap((hash) => State.alive(state, { authority, chainId }, hash) ?? [])

export const recordInclusions =
  (state: State.State): Service["recordInclusions"] =>
  (authority, chainId, outcomes) =>
    step(() => {
      const ops = named(
        state,
        authority,
        chainId,
        outcomes.map((it) => it.userOpHash)
      )
      State.settleOps(state, ops, outcomes)
      return answer(State.affected(ops.map((op) => op.requestId)))
    })

export const revertInclusions =
  (state: State.State): Service["revertInclusions"] =>
  (authority, chainId, hashes) =>
    step(() => {
      const ops = named(state, authority, chainId, hashes).filter((op) => op.handover !== null)
      for (const op of ops) if (op.state === "settled") State.moveOp(state, op, "sent", null)
      const concerned = State.affected(ops.map((op) => op.requestId))
      State.reopen(state, concerned)
      return answer(concerned)
    })

export const finaliseInclusions =
  (state: State.State): Service["finaliseInclusions"] =>
  (authority, chainId, hashes) =>
    step(() => {
      for (const op of named(state, authority, chainId, hashes))
        if (op.state === "settled") op.handover = null
      return done
    })
