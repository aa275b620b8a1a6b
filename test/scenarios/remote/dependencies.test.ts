import { id as hashOf, Interface } from "ethers"
import { describe, expect, it } from "vitest"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import type { JsonOp } from "../../support/bundler/StandIn.js"
import { errorsOf } from "../../support/stack/Stack.js"
import { useRemote } from "./support.js"

const { behave, bundler, sent, stack } = useRemote({ ledger: null }, (stack) => stack.create("one", "two"))

const hit = (salt: string, id: string, dependsOn?: number): Operation =>
  stack.hit(salt, id, dependsOn === undefined ? {} : { dependsOn })
const execute = (...operations: ReadonlyArray<Operation>) => stack.ask(stack.execute(operations))

const walletAbi = new Interface(artifact("Wallet").abi)
const counterAbi = new Interface(artifact("Counter").abi)
/** The id that an op counts. Its wallet makes one call, without a ledger. */
const idOf = ({ callData }: JsonOp): string => {
  const [target, , data] = walletAbi.decodeFunctionData("execute", callData)
  expect(target).toBe(stack.counter.target)
  return String(counterAbi.parseTransaction({ data })?.args.at(-1))
}
const given = () => sent().map(({ op }) => idOf(op))

describe("operations that depend on others, through an external bundler", () => {
  it("reach it one after the other, each once its predecessor has landed", async () => {
    const [a, b, c] = [hashOf("a1"), hashOf("b1"), hashOf("c1")]
    behave(() => ({ does: "keep" }))
    const answer = execute(hit("one", c, 2), hit("one", a), hit("two", b, 1))
    for (const [place, id] of [a, b, c].entries()) {
      await expect.poll(given, { timeout: 10_000 }).toEqual([a, b, c].slice(0, place + 1))
      expect(await stack.counts(id)).toEqual([0])
      await bundler.release()
    }
    const { status, txHashes } = await answer
    expect([status, txHashes.length]).toEqual([1, 3])
  })

  it("do not reach it when the predecessor has failed on the chain", async () => {
    const [gate, a, b, c] = [hashOf("gate2"), hashOf("a2"), hashOf("b2"), hashOf("c2")]
    behave(() => ({ does: "keep" }))
    const gated = { funcSignature: "hitIfOpen(bytes32,bytes32)", funcParams: [gate, a] }
    const answer = execute(stack.hit("one", "", gated), hit("two", b, 0), hit("two", c))
    await expect.poll(() => given().length, { timeout: 10_000 }).toBe(2)
    await (await stack.counter.getFunction("setClosed").send(gate, true)).wait()
    await bundler.release()
    const failed = [expect.any(String), "dependency failed: operation 0", null]
    expect(errorsOf(await answer)).toEqual(failed)
    expect(given()).not.toContain(b)
  })

  it("do not reach it when the bundler refuses the predecessor", async () => {
    const [a, b] = [hashOf("a3"), hashOf("b3")]
    behave(() => ({ does: "refuse", code: -32_500, message: "not today" }))
    const failure = await stack.refused(stack.execute([hit("one", a), hit("two", b, 0)]))
    expect(failure).toMatchObject({
      _tag: "Unprocessable",
      code: "outcome_unknown",
      details: [
        { message: expect.stringContaining("not today") },
        { message: "dependency failed: operation 0" }
      ]
    })
    expect(given()).toEqual([a])
  })

  it("are not issued for signatures made elsewhere: no rule would order them", async () => {
    const operations = [hit("one", hashOf("first")), hit("two", hashOf("second"), 0)]
    const message =
      "this chain's bundler keeps no ops together: use /execute, or send this operation once the other has succeeded"
    const { settings } = stack
    expect(await stack.refused(EstimateGas.run(stack.caller(), { operations, settings }))).toMatchObject({
      code: "invalid_request",
      details: [{ path: "operations[1].dependsOn", message }]
    })
    expect(sent()).toEqual([])
  })

  it("resume after a restart in between, each once", async () => {
    const [a, b] = [hashOf("a4"), hashOf("b4")]
    const [caller, database] = [stack.caller(), stack.database()]
    const first = stack.begin({ database })
    behave(() => ({ does: "keep" }))
    first.runFork(stack.execute([hit("one", a), hit("one", b, 0)], {}, caller))
    await expect.poll(given, { timeout: 10_000 }).toEqual([a])
    await first.dispose()
    await stack.living({ database }, async (second) => {
      await bundler.release()
      await expect.poll(given, { timeout: 20_000 }).toEqual([a, b])
      await bundler.release()
      expect((await stack.answerOf(second, caller.requestId)).answer).toMatchObject({ status: 1 })
      expect(await stack.counts(a, b)).toEqual([1, 1])
      expect(given()).toEqual([a, b])
    })
  })
})
