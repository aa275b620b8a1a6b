import * as Effect from "effect/Effect"
import * as Latch from "effect/Latch"
import { describe, expect, it } from "vitest"
import type { Subject } from "../../../src/domain/policy/Subject.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import * as Known from "../../support/stack/Known.js"
import { errorsOf, type LifeOptions, type Runtime, useStack } from "../../support/stack/Stack.js"
import * as Policed from "./Policed.js"

const stack = useStack({}, async (stack) => {
  for (const wallet of await stack.create("one")) await stack.mint(wallet, 1_000_000n)
  await stack.provider.send("evm_setIntervalMining", [1])
})

const keyId = "0123456789ab"

/** Allows payments of the token up to a sum a day; `null` allows nothing. */
const allow = (life: Runtime, subject: Subject, max: bigint | null) => {
  const limits = [Policed.cap(stack.anvil.chainId, Address.unsafe(String(stack.token.target)), max ?? 0n)]
  return Policed.put(life, subject, max === null ? {} : { rules: Policed.allowing("erc20.transfer"), limits })
}

const callerOf = () => {
  const caller = stack.caller()
  return { ...caller, principal: { ...caller.principal, keyId } }
}

const accepted = async (life: Runtime, operations: Parameters<typeof stack.execute>[0]) =>
  (await stack.accepted(life, operations, callerOf())).requestId

/** The result once a new version is in force, which takes up to a second. */
const inForce = async <A>(ask: () => Promise<A>): Promise<A> => {
  const found: Array<A> = []
  await expect.poll(async () => found.push(await ask()), { timeout: 5_000 }).toBe(1)
  return found[0] as A
}

describe("spending rules", () => {
  it("judge scheduled work at acceptance, and as its key when it is due in another process", async () => {
    const database = stack.database()
    const to = Policed.shop()
    const at = (await stack.now()) + 6
    const payment = { ...stack.transfer("one", to, "100"), validAfter: at }
    const requestId = await stack.living({ database }, async (life) => {
      await Known.past(stack, life)
      await allow(life, `key:${keyId}`, null)
      await expect(accepted(life, [payment])).rejects.toMatchObject({ code: "policy_refused" })
      await allow(life, `key:${keyId}`, 100n)
      return inForce(() => accepted(life, [payment]))
    })
    await stack.living({ database }, async (life) => {
      await allow(life, `key:${keyId}`, 99n)
      expect((await stack.requestOf(life, requestId))?.policies).toEqual([
        { layer: "account", subject: `key:${keyId}`, version: 2 }
      ])
      expect(await stack.answerOf(life, requestId)).toMatchObject({ failure: { code: "policy_refused" } })
    })
    expect(await stack.balanceOf(to)).toBe(0n)
  })

  it("neither judge a repeat of an accepted request, nor store a refusal under its idempotency key", () =>
    stack.living({ database: stack.database() }, async (life) => {
      const to = Policed.shop()
      const idempotency = { key: "once", bodyHash: Keccak.hashText("once") }
      const send = () =>
        life.runPromise(
          Effect.match(
            stack.execute([stack.transfer("one", to, "100")], {}, { ...callerOf(), idempotency }),
            {
              onFailure: ({ code }) => code as string,
              onSuccess: (answer) => errorsOf(answer)
            }
          )
        )
      await allow(life, "account", null)
      expect(await send()).toBe("policy_refused")
      await allow(life, "account", 100n)
      await expect.poll(send, { timeout: 5_000 }).toEqual([null])
      // It would have no room.
      expect(await send()).toEqual([null])
      expect(await stack.balanceOf(to)).toBe(100n)
    }))

  const keyed = (life: Runtime, to: Address.Address) =>
    life.runPromise(
      Effect.match(
        stack.execute(
          [stack.transfer("one", to, "100")],
          {},
          {
            ...callerOf(),
            arrivedAt: Date.now(),
            idempotency: { key: "twice", bodyHash: Keccak.hashText("twice") }
          }
        ),
        { onFailure: ({ code }) => code as string, onSuccess: (answer) => errorsOf(answer) }
      )
    )

  /** A limit of one payment, a process that works, and a process with a journal that stops at a call. */
  const besides = async (
    stopping: (wait: Effect.Effect<void>) => LifeOptions["wrapJournal"],
    body: (slow: Runtime, life: Runtime, latch: Record<"reached" | "goOn", Latch.Latch>) => Promise<void>
  ) => {
    const database = stack.database()
    const latch = { reached: Latch.makeUnsafe(false), goOn: Latch.makeUnsafe(false) }
    await stack.living({ database }, async (life) => {
      await Known.past(stack, life)
      await allow(life, "account", 100n)
    })
    const wrapJournal = stopping(Effect.andThen(latch.reached.open, latch.goOn.await))
    await stack.living({ database, ownsLanes: false, ...(wrapJournal && { wrapJournal }) }, (slow) =>
      stack.living({ database }, (life) => body(slow, life, latch))
    )
  }

  it("refuse no repeat whose original another process accepts afterwards", () =>
    besides(
      (wait) => (journal) => ({
        ...journal,
        accept: (list) => Effect.andThen(wait, journal.accept(list))
      }),
      async (slow, life, { goOn, reached }) => {
        const to = Policed.shop()
        const original = keyed(slow, to)
        await Effect.runPromise(reached.await)
        // The original holds the rest of the limit.
        expect(await keyed(life, to)).toBe("policy_refused")
        await Effect.runPromise(goOn.open)
        expect(await original).toBe("unavailable")
        expect(await stack.balanceOf(to)).toBe(0n)
        expect(await keyed(life, to)).toEqual([null])
        expect(await keyed(slow, to)).toEqual([null])
        expect(await stack.balanceOf(to)).toBe(100n)
      }
    ))

  it("name the accepted request instead of refusing its repeat", () =>
    besides(
      (wait) => (journal) => ({
        ...journal,
        read: (question) =>
          Effect.tap(journal.read(question), () => (question.idempotency.length === 0 ? Effect.void : wait))
      }),
      async (slow, life, { goOn, reached }) => {
        const to = Policed.shop()
        const repeat = keyed(slow, to)
        await Effect.runPromise(reached.await)
        expect(await keyed(life, to)).toEqual([null])
        await Effect.runPromise(goOn.open)
        expect(await repeat).toBe("outcome_unknown")
        expect(await keyed(slow, to)).toEqual([null])
        expect(await stack.balanceOf(to)).toBe(100n)
      }
    ))

  it("count later slices of a request when they are due", () =>
    stack.living({ database: stack.database() }, async (life) => {
      const to = Policed.shop()
      const count = 260
      await allow(life, "account", BigInt(count - 2))
      const requestId = await accepted(
        life,
        Array.from({ length: count }, () => stack.transfer("one", to, "1"))
      )
      const { answer } = await stack.answerOf(life, requestId)
      const refused = errorsOf(answer).filter((error) => error !== null)
      expect(refused).toHaveLength(2)
      for (const error of refused) expect(error).toContain("limit cap: 1 asked, 0 left")
      expect(await stack.balanceOf(to)).toBe(BigInt(count - 2))
    }))
})
