import { randomUUID } from "node:crypto"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { expect, it } from "vitest"
import * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import { OpJournal } from "../../../src/application/ports/journal/OpJournal.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import * as Layers from "../../support/journal/Layers.js"
import { useStack } from "../../support/stack/Stack.js"
import * as Life from "../../support/worker/Life.js"

/** The monitor reprices the worker's transactions, under the same nonce. */

const stack = useStack({ profile: { bumpAfterMillis: 200 } }, (stack) => stack.create("priced"))

it("is replaced at higher prices while blocks come that do not take it, and lands once", async () => {
  const bodies = new Map<string, ReadonlyArray<Operation>>()
  const life = await Life.begin(stack, Layers.sqliteAt(stack.database()), bodies)
  await stack.automine(false)
  const id = `0x${randomUUID().replaceAll("-", "").padEnd(64, "0")}`
  const operations = [stack.hit("priced", id)]
  const caller = stack.caller()
  bodies.set(caller.requestId, operations)
  await stack.runtime.runPromise(
    Effect.flatMap(
      ExecuteOperations.kind.offerOf(caller, { operations, settings: stack.settings }, "{}"),
      life.intake.take
    )
  )
  const [first] = await stack.pooled(1)
  await stack.baseFee(BigInt(first?.maxFeePerGas ?? 0) + 1n)
  await stack.mine()
  await expect
    .poll(
      async () => {
        await stack.mine()
        const [now] = await stack.pool()
        return now === undefined || BigInt(now.maxFeePerGas) > BigInt(first?.maxFeePerGas ?? 0)
      },
      { timeout: 15_000, interval: 200 }
    )
    .toBe(true)
  await expect
    .poll(
      async () => {
        await stack.mine()
        const { ops } = await stack.runtime.runPromise(
          Context.get(life.ports, OpJournal).ofRequest(caller.requestId)
        )
        return ops.map(({ state, success }) => [state, success])
      },
      { timeout: 15_000, interval: 200 }
    )
    .toEqual([["settled", true]])
  expect(await stack.counts(id)).toEqual([1])
  await stack.runtime.runPromise(Scope.close(life.scope, Exit.void))
})
