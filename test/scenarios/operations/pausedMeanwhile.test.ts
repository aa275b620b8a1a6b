import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { hexlify, randomBytes } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import { sliceSize } from "../../../src/application/intake/submission/SlicedSubmission.js"
import { KillSwitches, type Switched } from "../../../src/application/ports/KillSwitches.js"
import type { Failure } from "../../../src/application/request/Failure.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as TransactSigner from "../../../src/application/usecases/operations/TransactSigner.js"
import { Address, keyOf, type Ports, type Stack, startStack } from "../../support/stack/Stack.js"

const submitter = keyOf(1).address
const recipient = () => Address.unsafe(hexlify(randomBytes(20)))

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
  const [wallet] = await stack.create("one")
  await stack.mint(String(wallet), 1_000n)
})
afterAll(() => stack.stop())

const operation = (): Operation => ({
  salt: "one",
  walletCustody: 1,
  to: Address.unsafe(String(stack.token.target)),
  funcSignature: "transfer(address,uint256)",
  funcParams: [recipient(), "1"]
})

const execute = () =>
  ExecuteOperations.run(stack.caller(), { operations: [operation()], settings: stack.settings })

/** The same for a caller that does not wait; dies when it is accepted. */
const executeLater = (operations: ReadonlyArray<Operation>) =>
  Effect.flatMap(Deferred.make<never>(), (accepted) => {
    const onAccepted = () => Deferred.unsafeDone(accepted, Effect.dieMessage("it was accepted"))
    const caller = { ...stack.caller(), isAsynchronous: true, onAccepted }
    return Effect.raceFirst(
      ExecuteOperations.run(caller, { operations, settings: stack.settings }),
      Deferred.await(accepted)
    )
  })

const transact = () =>
  TransactSigner.run(stack.caller(), { to: recipient(), value: 1n, settings: stack.settings })

/** The failure of a write that found nothing paused when it came, and the switch thrown while it was made ready. */
const refused = <A, R extends Ports>(
  write: Effect.Effect<A, Failure, R>,
  thrown: (what: Switched) => boolean
) => {
  const asked = new Set<string>()
  const isPaused = (what: Switched) =>
    Effect.sync(() => {
      const known = asked.has(what.kind)
      asked.add(what.kind)
      return known && thrown(what)
    })
  return stack.refused(Effect.provideService(write, KillSwitches, { isPaused }))
}

describe.each([
  ["an execution", execute],
  ["a transaction of the signer", transact]
] as const)("%s", (_, write: () => Effect.Effect<unknown, Failure, Ports>) => {
  it.each(["signer", "chain"] as const)(
    "whose %s is paused between its first look and its acceptance is refused, and sends nothing",
    async (kind) => {
      const before = await stack.provider.getTransactionCount(submitter, "pending")
      const failure = await refused(write(), (what) => what.kind === kind)
      expect(failure).toMatchObject({ code: "writes_paused" })
      expect(await stack.provider.getTransactionCount(submitter, "pending")).toBe(before)
    }
  )

  it("is done where nothing is paused", async () => {
    const before = await stack.provider.getTransactionCount(submitter, "pending")
    await stack.ask(write())
    expect(await stack.provider.getTransactionCount(submitter, "pending")).toBe(before + 1)
  })
})

describe.each([
  [
    "that is too large to be measured before it is accepted",
    () => Array.from({ length: sliceSize + 1 }, operation)
  ],
  [
    "whose window begins tomorrow",
    () => [{ ...operation(), validAfter: Math.floor(Date.now() / 1_000) + 86_400 }]
  ]
] as const)("an execution %s, of a caller that does not wait", (_, operations) => {
  it.each(["signer", "chain"] as const)(
    "is not accepted when its %s is paused after its first look",
    async (kind) => {
      const failure = await refused(executeLater(operations()), (what) => what.kind === kind)
      expect(failure).toMatchObject({ code: "writes_paused" })
    }
  )
})
