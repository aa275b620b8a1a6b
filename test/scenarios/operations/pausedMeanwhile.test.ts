import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { expect, it } from "vitest"
import type { Failure } from "../../../src/application/failures/Failure.js"
import type { Switched } from "../../../src/application/ports/KillSwitches.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import { size as sliceSize } from "../../../src/application/prepare/ops/Slices.js"
import * as Journey from "../../support/custody/Journey.js"
import { type Ports, useStack } from "../../support/stack/Stack.js"

let isPaused = (_: Switched): boolean => false
const killSwitches = { isPaused: (what: Switched) => Effect.sync(() => isPaused(what)) }

const stack = useStack({ killSwitches }, async (stack) => {
  const [wallet] = await stack.create("one")
  await stack.mint(String(wallet), 1_000n)
})

const operation = (more: Partial<Operation> = {}) => stack.transfer("one", Journey.recipient(), "1", more)

/** For a caller that does not wait; dies when it is accepted. */
const later = (operations: ReadonlyArray<Operation>) =>
  Effect.flatMap(Deferred.make<never>(), (accepted) => {
    const onAccepted = () => Deferred.doneUnsafe(accepted, Effect.die(new Error("it was accepted")))
    const caller = { ...stack.caller(), isAsynchronous: true, onAccepted }
    return Effect.raceFirst(stack.execute(operations, {}, caller), Deferred.await(accepted))
  })

const writes: Readonly<Record<string, () => Effect.Effect<unknown, Failure, Ports>>> = {
  "an execution": () => stack.execute([operation()]),
  "a transaction of the signer": () => stack.transact({ to: Journey.recipient(), value: 1n }),
  "an execution that is too large to be measured before it is accepted": () =>
    later(Array.from({ length: sliceSize + 1 }, () => operation())),
  "an execution whose window begins tomorrow": () =>
    later([operation({ validAfter: Math.floor(Date.now() / 1_000) + 86_400 })])
}

it.each(
  Object.entries(writes).flatMap(([name, write]) =>
    (["signer", "chain"] as const).map((kind) => [name, kind, write] as const)
  )
)(
  "%s whose %s is paused between its first query and its acceptance is refused, and is not sent",
  async (_, kind, write) => {
    const pending = () => stack.provider.getTransactionCount(stack.signer.address, "pending")
    const before = await pending()
    const asked = new Set<string>()
    // No switch was active when it came; the switch activates during preparation.
    isPaused = (what) => {
      const known = asked.has(what.kind)
      asked.add(what.kind)
      return known && what.kind === kind
    }
    const failure = await stack.refused(write())
    expect(failure).toMatchObject({ code: "writes_paused" })
    expect(await pending()).toBe(before)
  }
)
