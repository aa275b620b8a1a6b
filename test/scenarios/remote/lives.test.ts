import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { describe, expect, it } from "vitest"
import * as Start from "../../../src/application/operate/Start.js"
import type { NamedBy } from "../../../src/application/ports/chain/ChainRpc.js"
import { RemoteOpJournal } from "../../../src/application/ports/journal/RemoteOpJournal.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Power from "../../support/stack/Power.js"
import { keyOf, type Runtime } from "../../support/stack/Stack.js"
import { useRemote } from "./support.js"

const { behave, bundler, different, given, sent, stack } = useRemote({ settledDepth: 6 }, async (stack) => {
  const [wallet] = await stack.create("wallet")
  await stack.mint(String(wallet), 100n)
})

let receivers = 0
const nobody = () => `0x${"d2".repeat(18)}${(0x1000 + receivers++).toString(16)}`
const execute = (caller: Caller, amount: string, to: string, settings = {}) =>
  stack.execute([stack.transfer("wallet", to, amount)], settings, caller)
const left = Effect.flatMap(RemoteOpJournal, ({ remoteSubmissions }) => remoteSubmissions)
const allSettled = async (life: Runtime) => {
  const remaining = () => stack.provider.send("anvil_mine", ["0x8"]).then(() => life.runPromise(left))
  await expect.poll(remaining, { timeout: 20_000 }).toEqual([])
}

/** A life that ends when the bundler has the op; the next one has this database. */
const ended = async (caller: Caller, amount: string, to: string, settings = {}) => {
  const database = stack.database()
  const first = stack.begin({ database })
  first.runFork(execute(caller, amount, to, settings))
  await given(1)
  await first.dispose()
  return { database }
}

describe("an op at a remote bundler", { timeout: 60_000 }, () => {
  it.each(["keep", "lose", "cut"] as const)(
    "is resumed by the next life of the process, when the bundler did this with it: %s",
    async (does) => {
      const [caller, to] = [stack.caller(), nobody()]
      behave((turn) => ({ does: turn === 0 ? does : "submit" }))
      await stack.living(await ended(caller, "3", to), async (second) => {
        if (does === "keep") await bundler.release()
        expect((await stack.answerOf(second, caller.requestId)).answer).toMatchObject({
          status: 1,
          returnData: [{ "0": { success: true } }]
        })
        expect(await stack.balanceOf(to)).toBe(3n)
        if (does === "keep") expect(sent()).toHaveLength(1)
        expect(different()).toBe(1)
        await allSettled(second)
      })
    }
  )

  it.each([
    ["before it is recorded as handed over", "handOver", "before"],
    ["after that, before it is given away", "handOver", "after"],
    ["before its landing is recorded", "recordInclusions", "before"],
    ["after that, before it is answered", "recordInclusions", "after"],
    ["before the answer is stored", "answer", "before"],
    ["after that", "answer", "after"]
  ] as const)("is done once by a process that stops %s, and the next one", async (_, step, moment) => {
    const [caller, to, database] = [stack.caller(), nobody(), stack.database()]
    const power = Power.make({ step, moment })
    const first = stack.begin({ database, ...power.life })
    await first.runPromise(Start.start)
    first.runFork(execute(caller, "1", to))
    await power.failed
    await first.dispose()
    await stack.living({ database }, async (second) => {
      expect((await stack.answerOf(second, caller.requestId)).answer).toMatchObject({ status: 1 })
      expect([await stack.balanceOf(to), different()]).toEqual([1n, 1])
      await allSettled(second)
    })
  })

  it("is refused once by a process that stops before it notes that, and ends in the next one", async () => {
    const [caller, to, database] = [stack.caller(), nobody(), stack.database()]
    const power = Power.make({ step: "fail", moment: "before" })
    behave(() => ({ does: "refuse", code: -32_500, message: "AA23 reverted" }))
    const first = stack.begin({ database, ...power.life })
    first.runFork(execute(caller, "1", to))
    await power.failed
    await first.dispose()
    behave(() => ({ does: "submit" }))
    await stack.living({ database }, async (second) => {
      expect((await stack.answerOf(second, caller.requestId)).answer).toMatchObject({ status: 1 })
      expect([await stack.balanceOf(to), different()]).toEqual([1n, 1])
      await allSettled(second)
    })
  })

  it("is searched at its caller's node in the next life too, and as the caller's: never as the operator's", async () => {
    const rpc = stack.settings.rpc.replace("127.0.0.1", "localhost")
    expect(rpc).not.toBe(stack.settings.rpc)
    const [caller, to] = [stack.caller(), nobody()]
    behave(() => ({ does: "keep" }))
    const life = await ended(caller, "2", to, { rpc })
    const named: Array<NamedBy> = []
    const wrapChain: Parameters<typeof stack.begin>[0] = {
      wrapChain: ({ connect }) => ({
        connect: (url, by) => {
          if (url === rpc) named.push(by)
          return connect(url, by)
        }
      })
    }
    await stack.living({ ...life, ...wrapChain }, async (second) => {
      await bundler.release()
      await stack.answerOf(second, caller.requestId)
    })
    expect(new Set(named.map((by) => JSON.stringify(by)))).toEqual(
      new Set([JSON.stringify({ account: caller.principal.accountId })])
    )
  })

  it("landed while no process ran, many blocks ago, is not repeated", async () => {
    const [caller, to] = [stack.caller(), nobody()]
    behave(() => ({ does: "keep" }))
    const life = await ended(caller, "4", to)
    await bundler.release()
    await stack.provider.send("anvil_mine", ["0x900", "0x1"])
    await stack.living(life, async (second) => {
      expect((await stack.answerOf(second, caller.requestId)).answer).toMatchObject({ status: 1 })
      expect([await stack.balanceOf(to), sent().length]).toEqual([4n, 1])
    })
  })

  it("with a vanished landing is on its way again, and its answer is revoked until it has landed again", () =>
    stack.living({}, async (life) => {
      const [caller, to] = [stack.caller(), nobody()]
      const outcome = async () => (await stack.requestOf(life, caller.requestId))?.outcome ?? null
      behave(() => ({ does: "keep" }))
      const answer = life.runPromise(execute(caller, "5", to))
      await given(1)
      const snapshot = await stack.provider.send("evm_snapshot", [])
      await bundler.release()
      const first = await answer
      expect(first.status).toBe(1)
      expect(await outcome()).not.toBeNull()
      await stack.provider.send("evm_revert", [snapshot])
      expect(await stack.balanceOf(to)).toBe(0n)
      bundler.attach(stack.provider, keyOf(6))
      behave(() => ({ does: "submit" }))
      await stack.provider.send("anvil_mine", ["0x2"])
      await expect.poll(outcome, { timeout: 10_000 }).toBeNull()
      const mined = () => stack.mine().then(outcome)
      await expect.poll(mined, { timeout: 40_000, interval: 300 }).not.toBeNull()
      const second = (await stack.answerOf(life, caller.requestId)).answer
      expect(second.status).toBe(1)
      expect(second.txHash).not.toBe(first.txHash)
      expect([await stack.balanceOf(to), different()]).toEqual([5n, 1])
      await allSettled(life)
    }))

  it("is held when its wallet made the call under another nonce, unknown to a restored journal", async () => {
    const [caller, to, database] = [stack.caller(), nobody(), stack.database()]
    const power = Power.make({ step: "handOver", moment: "before" })
    const first = stack.begin({ database, ...power.life })
    first.runFork(execute(caller, "8", to))
    await power.failed
    await first.dispose()
    await stack.living({}, async (elsewhere) => {
      await elsewhere.runPromise(execute(stack.caller(), "1", nobody()))
      await elsewhere.runPromise(execute(stack.caller(), "8", to))
    })
    await stack.living({ database }, async (second) => {
      const held = async () => (await stack.requestOf(second, caller.requestId))?.held ?? null
      await expect.poll(held, { timeout: 20_000 }).toContain("has made the same call")
      await stack.provider.send("anvil_mine", ["0x8"])
      expect([await stack.balanceOf(to), different()]).toEqual([8n, 2])
    })
  })

  it("executed under its nonce, unknown to a restored journal, is not sent again", async () => {
    const [caller, to, database] = [stack.caller(), nobody(), stack.database()]
    const power = Power.make({ step: "handOver", moment: "before" })
    const first = stack.begin({ database, ...power.life })
    first.runFork(execute(caller, "7", to))
    await power.failed
    await first.dispose()
    await stack.living({}, (elsewhere) => elsewhere.runPromise(execute(stack.caller(), "7", to)))
    await stack.living({ database }, async (second) => {
      expect((await stack.answerOf(second, caller.requestId)).answer).toMatchObject({ status: 1 })
      expect([await stack.balanceOf(to), sent().length]).toEqual([7n, 1])
    })
  })

  it("waits, unsent, for a bundler that does not report its EntryPoints", async () => {
    const profile = { remoteBundler: Redacted.make("http://127.0.0.1:1/a-key-of-the-operator") }
    await stack.living({ profile: { ...profile, receiptTimeoutMillis: 2_000 } }, async (life) => {
      const failure = await life.runPromise(Effect.flip(execute(stack.caller(), "6", nobody())))
      expect(failure).toMatchObject({ code: "outcome_unknown" })
      expect(JSON.stringify({ ...failure, message: failure.message })).not.toContain("a-key-of-the-operator")
      expect(await life.runPromise(left)).toEqual([])
    })
  })
})
