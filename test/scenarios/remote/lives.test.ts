import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import { afterEach, beforeEach, describe, expect, it } from "vitest"
import * as Replicas from "../../../src/adapters/memory/Replicas.js"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as Engine from "../../../src/application/lanes/Engine.js"
import { ChainRpc, type NamedBy } from "../../../src/application/ports/chain/ChainRpc.js"
import { RemoteOpJournal } from "../../../src/application/ports/journal/RemoteOpJournal.js"
import type { Fields } from "../../../src/application/ports/NetworkProfile.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as GetRequest from "../../../src/application/usecases/operations/GetRequest.js"
import { type StandIn, startStandIn } from "../../support/bundler/StandIn.js"
import { Address, keyOf, type Ports, type Stack, startStack } from "../../support/stack/Stack.js"

/** An engine with nothing in its memory, over the journal of the stack. */
interface Life {
  readonly run: <A, E, R extends Ports>(effect: Effect.Effect<A, E, R>) => Promise<A>
  readonly end: () => Promise<void>
}

describe("an op at a remote bundler", () => {
  let bundler: StandIn
  let stack: Stack
  let token: Address.Address
  const start = async (profile: Fields = {}) => {
    stack = await startStack({ profile: { ...profile, remoteBundler: Redacted.make(bundler.url) } })
    bundler.attach(stack.provider, keyOf(7))
    token = Address.unsafe(await stack.token.getAddress())
    const [wallet] = await stack.create("wallet")
    await stack.mint(String(wallet), 100n)
  }
  beforeEach(async () => {
    bundler = await startStandIn()
  })
  afterEach(async () => {
    await stack.stop()
    await bundler.stop()
  })

  const to = Address.unsafe(`0x${"d2".repeat(20)}`)
  const transfer = (amount: string): Operation => ({
    salt: "wallet",
    walletCustody: 1,
    to: token,
    funcSignature: "transfer(address,uint256)",
    funcParams: [to, amount]
  })
  const execute = (caller: Caller, amount: string) =>
    ExecuteOperations.run(caller, { operations: [transfer(amount)], settings: stack.settings })

  /** `connected`: to what it connects, and by whose name. */
  const begin = async (connected: Array<readonly [string, NamedBy]> = []): Promise<Life> => {
    const before = await stack.runtime.runPromise(Effect.context<Ports>())
    const { connect } = Context.get(before, ChainRpc)
    const ports = Context.add(before, ChainRpc, {
      connect: (url, by) => {
        connected.push([url, by])
        return connect(url, by)
      }
    })
    const engine = Layer.provide(Layer.fresh(Engine.layer), Replicas.layer)
    const runtime = ManagedRuntime.make(Layer.provideMerge(engine, Layer.succeedContext(ports)))
    return { run: (effect) => runtime.runPromise(effect), end: () => runtime.dispose() }
  }
  const stateOf = (caller: Caller) => stack.ask(GetRequest.run(caller, { requestId: caller.requestId }))

  it.each(["keep", "lose", "cut"] as const)(
    "is taken up by the next life of the process, when the bundler did this with it: %s",
    async (does) => {
      await start()
      const first = await begin()
      const sent = bundler.sent.length
      bundler.behave((_, turn) => ({ does: turn === sent ? does : "submit" }))
      const caller = stack.caller()
      const lost = first.run(execute(caller, "3")).catch(() => "the process is gone")
      await expect.poll(() => bundler.sent.length, { timeout: 10_000 }).toBe(sent + 1)
      await first.end()
      expect(await lost).toBe("the process is gone")
      const before = bundler.sent.length
      const second = await begin()
      await second.run(Sweep.start)
      if (does === "keep") await bundler.release()
      await expect
        .poll(() => stateOf(caller), { timeout: 40_000 })
        .toMatchObject({
          state: "final",
          httpStatus: 200,
          answer: { status: 1, returnData: [{ "0": { success: true } }] }
        })
      expect(await stack.balanceOf(to)).toBe(3n)
      if (does === "keep") expect(bundler.sent.length).toBe(before)
      expect(new Set(bundler.sent.slice(sent).map(({ op }) => JSON.stringify(op))).size).toBe(1)
      expect(
        await second.run(Effect.flatMap(RemoteOpJournal, ({ remoteSubmissions: handedOver }) => handedOver))
      ).toEqual([])
      await second.end()
    }
  )

  it("is looked for by its caller's node in the next life too, and as the caller's: never as the operator's", async () => {
    await start()
    const rpc = stack.settings.rpc.replace("127.0.0.1", "localhost")
    expect(rpc).not.toBe(stack.settings.rpc)
    const first = await begin()
    const sent = bundler.sent.length
    bundler.behave(() => ({ does: "keep" }))
    const caller = stack.caller()
    const settings = { ...stack.settings, rpc }
    const request = ExecuteOperations.run(caller, { operations: [transfer("2")], settings })
    const lost = first.run(request).catch(() => "the process is gone")
    await expect.poll(() => bundler.sent.length, { timeout: 10_000 }).toBe(sent + 1)
    await first.end()
    await lost
    const connected: Array<readonly [string, NamedBy]> = []
    const second = await begin(connected)
    await second.run(Sweep.run)
    const named = connected.flatMap(([url, by]) => (url === rpc ? [by] : []))
    expect(named.length).toBeGreaterThan(0)
    for (const by of named) expect(by).toEqual({ account: caller.principal.accountId })
    await bundler.release()
    await expect.poll(() => stateOf(caller), { timeout: 40_000 }).toMatchObject({ state: "final" })
    await second.end()
  })

  it("that landed while no process ran, many blocks ago, is not done twice", async () => {
    await start()
    const first = await begin()
    const sent = bundler.sent.length
    bundler.behave(() => ({ does: "keep" }))
    const caller = stack.caller()
    const lost = first.run(execute(caller, "4")).catch(() => "the process is gone")
    await expect.poll(() => bundler.sent.length, { timeout: 10_000 }).toBe(sent + 1)
    await first.end()
    await lost
    await bundler.release()
    await stack.provider.send("anvil_mine", ["0x900", "0x1"])
    const second = await begin()
    await second.run(Sweep.start)
    await expect.poll(() => stateOf(caller), { timeout: 40_000 }).toMatchObject({ state: "final" })
    expect((await stateOf(caller)).answer).toMatchObject({ status: 1 })
    expect(await stack.balanceOf(to)).toBe(4n)
    expect(bundler.sent.length).toBe(sent + 1)
    await second.end()
  })

  it("whose landing vanishes is on its way again, and its answer is taken back until it has landed anew", async () => {
    await start({ settledDepth: 6 })
    // The life of the stack itself: it knows of reopened requests once it recovers.
    await stack.runtime.runPromise(Sweep.start)
    const sent = bundler.sent.length
    const caller = stack.caller()
    bundler.behave(() => ({ does: "keep" }))
    const answer = stack.ask(execute(caller, "5"))
    await expect.poll(() => bundler.sent.length, { timeout: 10_000 }).toBe(sent + 1)
    const snapshot = await stack.provider.send("evm_snapshot", [])
    await bundler.release()
    const first = await answer
    expect(first.status).toBe(1)
    expect(await stateOf(caller)).toMatchObject({ state: "final" })
    await stack.provider.send("evm_revert", [snapshot])
    expect(await stack.balanceOf(to)).toBe(0n)
    bundler.attach(stack.provider, keyOf(6))
    bundler.behave(() => ({ does: "submit" }))
    await stack.provider.send("anvil_mine", ["0x2"])
    await expect.poll(() => stateOf(caller), { timeout: 10_000 }).toMatchObject({ state: "pending" })
    await expect
      .poll(
        async () => {
          await stack.provider.send("anvil_mine", ["0x1"])
          return stateOf(caller)
        },
        { timeout: 40_000, interval: 300 }
      )
      .toMatchObject({ state: "final" })
    expect(await stack.balanceOf(to)).toBe(5n)
    const { answer: second } = await stateOf(caller)
    expect(second).toMatchObject({ status: 1 })
    expect(second).not.toMatchObject({ txHash: first.txHash })
    expect(new Set(bundler.sent.slice(sent).map(({ op }) => JSON.stringify(op))).size).toBe(1)
    await stack.provider.send("anvil_mine", ["0x8"])
    await expect
      .poll(
        () =>
          stack.runtime.runPromise(
            Effect.flatMap(RemoteOpJournal, ({ remoteSubmissions: handedOver }) => handedOver)
          ),
        {
          timeout: 10_000
        }
      )
      .toEqual([])
  })

  it("waits, unsent, for a bundler that does not say what it serves", async () => {
    await start()
    const caller = stack.caller()
    await bundler.stop()
    const fresh = await begin()
    const failure = await fresh.run(Effect.flip(execute(caller, "6")))
    expect(failure).toMatchObject({ code: "outcome_unknown" })
    expect(JSON.stringify({ ...failure, message: failure.message })).not.toContain("a-key-of-the-operator")
    expect(
      await fresh.run(Effect.flatMap(RemoteOpJournal, ({ remoteSubmissions: handedOver }) => handedOver))
    ).toEqual([])
    await fresh.end()
    bundler = await startStandIn()
  })
})
