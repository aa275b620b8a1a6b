import { expect } from "@effect/vitest"
import { Cause, Context, Effect, Exit } from "effect"
import * as StoreFailure from "../../../src/application/failures/StoreFailure.js"
import * as Keys from "../../../src/application/keys/Keys.js"
import * as Observed from "../../../src/application/observe/Observed.js"
import { type Act, AuditLogError } from "../../../src/application/ports/AuditLog.js"
import { OpJournal } from "../../../src/application/ports/journal/OpJournal.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import type { Signer } from "../../../src/application/ports/Signers.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"

const account = "acme" as AccountId
const away = new AuditLogError({ message: "the audit log's store failed" })

test("no signature is made without its audit entry, and the key is not to blame", function* () {
  let signed = 0
  const key: Signer = {
    address: Make.address(1),
    publicKey: "",
    type: "PRIVATE_KEY",
    sign: () =>
      Effect.sync(() => {
        signed += 1
        return Make.word(1)
      })
  }
  const ports = Observed.signers({ resolve: () => Effect.succeed(key) }, () => Effect.fail(away))
  const signer = Keys.withPatience(yield* ports.resolve(account, { clientId: "acme", versionId: "1" }))
  const exit = yield* Effect.exit(signer.sign(Make.word(2)))
  expect(signed).toBe(0)
  const cause = Exit.isFailure(exit) ? exit.cause : Cause.empty
  expect(cause.reasons.filter(Cause.isDieReason).map((reason) => reason.defect)).toEqual([away])
  expect(StoreFailure.isIn(cause)).toBe(true)
})

test("the audit log has an entry before a worker stores recorded or replaced bytes", function* () {
  const ports = yield* InMemory.makeJournal
  const acts: Array<Act> = []
  let isAway = true
  const observed = Observed.journal(ports, (act) =>
    isAway
      ? Effect.fail(new AuditLogError({ message: "the store is away" }))
      : Effect.sync(() => void acts.push(act))
  )
  const journal = Context.get(observed, TransactionJournal)
  yield* Context.get(ports, RequestJournal).accept([
    Make.acceptance("r1", [Make.op({ userOpHash: Make.word(1) })])
  ])
  const ops = yield* Context.get(ports, OpJournal).ready(Make.lane, 1)
  const first = Make.recording(0n, ops)
  expect((yield* Effect.flip(journal.record(first))).message).toContain("not stored")
  expect(yield* journal.openOf(Make.lane)).toEqual([])
  isAway = false
  expect(yield* journal.record(first)).toEqual({ _tag: "recorded" })
  const dearer = { ...first, txHash: Make.word(9), addedCost: 1n }
  expect(yield* journal.replace(dearer)).toBe(true)
  expect(acts.map(({ accountId, hash, kind }) => [kind, hash, accountId])).toEqual([
    ["transaction", first.txHash, first.access.accountId],
    ["transaction", dearer.txHash, first.access.accountId]
  ])
})
