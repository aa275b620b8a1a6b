import { expect } from "@effect/vitest"
import { Cause, Effect, Exit } from "effect"
import * as Keys from "../../../src/application/keys/Keys.js"
import * as Observed from "../../../src/application/observe/Observed.js"
import { AuditLogError } from "../../../src/application/ports/AuditLog.js"
import type { Signer } from "../../../src/application/ports/Signers.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import * as StoreFailure from "../../../src/application/request/StoreFailure.js"
import * as Make from "../../support/journal/Make.js"
import { test } from "../../support/Test.js"

const account = "acme" as AccountId
const away = new AuditLogError({ message: "the audit log's store failed" })

test("a signature of which the audit log takes no entry is not made, and its key is not to blame", function* () {
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
  const signer = Keys.bounded(yield* ports.resolve(account, { clientId: "acme", versionId: "1" }))
  const exit = yield* Effect.exit(signer.sign(Make.word(2)))
  expect(signed).toBe(0)
  const cause = Exit.isFailure(exit) ? exit.cause : Cause.empty
  expect(cause.reasons.filter(Cause.isDieReason).map((reason) => reason.defect)).toEqual([away])
  expect(StoreFailure.isIn(cause)).toBe(true)
})
