import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as ManagedRuntime from "effect/ManagedRuntime"
import * as Redacted from "effect/Redacted"
import { id as hashOf, Interface } from "ethers"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as Replicas from "../../../src/adapters/memory/Replicas.js"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as Engine from "../../../src/application/lanes/Engine.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as GetRequest from "../../../src/application/usecases/operations/GetRequest.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { type JsonOp, type StandIn, startStandIn } from "../../support/bundler/StandIn.js"
import { Address, keyOf, type Ports, type Stack, startStack } from "../../support/stack/Stack.js"

let bundler: StandIn
let stack: Stack
let counter: Address.Address
beforeAll(async () => {
  bundler = await startStandIn()
  stack = await startStack({ profile: { remoteBundler: Redacted.make(bundler.url), ledger: null } })
  bundler.attach(stack.provider, keyOf(7))
  counter = Address.unsafe(await stack.counter.getAddress())
  await stack.create("one", "two")
})
afterAll(async () => {
  await stack.stop()
  await bundler.stop()
})
let sent = 0
beforeEach(() => {
  bundler.behave(() => ({ does: "submit" }))
  sent = bundler.sent.length
})

const call = (salt: string, funcSignature: string, funcParams: ReadonlyArray<string>, dependsOn?: number) =>
  ({
    salt,
    walletCustody: 1,
    to: counter,
    funcSignature,
    funcParams,
    ...(dependsOn !== undefined && { dependsOn })
  }) satisfies Operation
const hit = (salt: string, id: string, dependsOn?: number) => call(salt, "hit(bytes32)", [id], dependsOn)
const execute = (caller: Caller, operations: ReadonlyArray<Operation>) =>
  ExecuteOperations.run(caller, { operations, settings: stack.settings })
const countOf = async (id: string): Promise<number> => Number(await stack.counter.getFunction("count")(id))

const walletAbi = new Interface(artifact("Wallet").abi)
const counterAbi = new Interface(artifact("Counter").abi)
/** The id that an op counts. Its wallet makes one call, and none of a ledger. */
const idOf = ({ callData }: JsonOp): string => {
  const [target, , data] = walletAbi.decodeFunctionData("execute", callData)
  expect(String(target).toLowerCase()).toBe(counter.toLowerCase())
  return String(counterAbi.parseTransaction({ data })?.args.at(-1))
}
const given = () => bundler.sent.slice(sent).map(({ op }) => idOf(op))

describe("operations that depend on others, through a bundler of somebody else", () => {
  it("are given to it one after the other, each once the one before has landed", async () => {
    const [a, b, c] = [hashOf("a1"), hashOf("b1"), hashOf("c1")]
    bundler.behave(() => ({ does: "keep" }))
    const answer = stack.ask(execute(stack.caller(), [hit("one", c, 2), hit("one", a), hit("two", b, 1)]))
    for (const [place, id] of [a, b, c].entries()) {
      await expect.poll(given, { timeout: 10_000 }).toEqual([a, b, c].slice(0, place + 1))
      expect(await countOf(id)).toBe(0)
      await bundler.release()
    }
    const result = await answer
    expect(result.status).toBe(1)
    expect(result.txHashes.length).toBe(3)
  })

  it("are not given to it when the one before has failed on the chain", async () => {
    const [gate, a, b, c] = [hashOf("gate2"), hashOf("a2"), hashOf("b2"), hashOf("c2")]
    bundler.behave(() => ({ does: "keep" }))
    const answer = stack.ask(
      execute(stack.caller(), [
        call("one", "hitIfOpen(bytes32,bytes32)", [gate, a]),
        hit("two", b, 0),
        hit("two", c)
      ])
    )
    await expect.poll(() => given().length, { timeout: 10_000 }).toBe(2)
    await (await stack.counter.getFunction("setClosed").send(gate, true)).wait()
    await bundler.release()
    const result = await answer
    expect(result.status).toBe(4)
    expect(result.returnData[1]?.["1"]?.error).toBe("dependency failed: operation 0")
    expect(result.returnData[2]?.["2"]?.success).toBe(true)
    expect(given().includes(b)).toBe(false)
  })

  it("are not given to it when the bundler refuses the one before", async () => {
    const [a, b] = [hashOf("a3"), hashOf("b3")]
    bundler.behave(() => ({ does: "refuse", code: -32_500, message: "not today" }))
    const failure = await stack.refused(execute(stack.caller(), [hit("one", a), hit("two", b, 0)]))
    expect(failure).toMatchObject({ _tag: "Unprocessable", code: "outcome_unknown" })
    expect(failure.details.map(({ message }) => message)).toEqual([
      expect.stringContaining("not today"),
      "dependency failed: operation 0"
    ])
    expect(given()).toEqual([a])
  })

  it("are not handed out for signatures made elsewhere: nothing would hold one to the other", async () => {
    const operations = [hit("one", hashOf("first")), hit("two", hashOf("second"), 0)]
    expect(
      await stack.refused(EstimateGas.run(stack.caller(), { operations, settings: stack.settings }))
    ).toMatchObject({
      code: "invalid_request",
      details: [
        {
          path: "operations[1].dependsOn",
          message:
            "this chain's bundler keeps no ops together: use /execute, or send this operation once the other has succeeded"
        }
      ]
    })
    expect(bundler.sent.length).toBe(sent)
  })

  it("go on after a restart in between, each once", async () => {
    const [a, b] = [hashOf("a4"), hashOf("b4")]
    const begin = async () => {
      const ports = await stack.runtime.runPromise(Effect.context<Ports>())
      return ManagedRuntime.make(
        Layer.provideMerge(
          Layer.provide(Layer.fresh(Engine.layer), Replicas.layer),
          Layer.succeedContext(ports)
        )
      )
    }
    const first = await begin()
    bundler.behave(() => ({ does: "keep" }))
    const caller = stack.caller()
    const lost = first.runPromise(execute(caller, [hit("one", a), hit("one", b, 0)])).catch(() => "gone")
    await expect.poll(given, { timeout: 10_000 }).toEqual([a])
    await first.dispose()
    expect(await lost).toBe("gone")
    const second = await begin()
    await second.runPromise(Sweep.start)
    await bundler.release()
    await expect.poll(given, { timeout: 20_000 }).toEqual([a, b])
    await bundler.release()
    await expect
      .poll(() => stack.ask(GetRequest.run(caller, { requestId: caller.requestId })), { timeout: 20_000 })
      .toMatchObject({ state: "final", httpStatus: 200, answer: { status: 1 } })
    expect([await countOf(a), await countOf(b)]).toEqual([1, 1])
    expect(given()).toEqual([a, b])
    await second.dispose()
  })
})
