import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import { Contract } from "ethers"
import { describe, expect, it } from "vitest"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { artifact, initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { Address, errorsOf, useStack } from "../../support/stack/Stack.js"

/** Calls that need more gas than they use, or do something else with less, and the least and most that each can do with. */
const calls: ReadonlyArray<readonly [string, string, ReadonlyArray<string>, number, number]> = [
  ["asks for 50,000 gas left", "guarded(uint256)", ["50000"], 50_000, 60_000],
  ["asks for 4,000,000 gas left", "guarded(uint256)", ["4000000"], 4_000_000, 4_200_000],
  ["lies 30 calls deep", "nested(uint256,uint256)", ["30", "100000"], 160_000, 230_000],
  ["forwards a fixed amount", "forwarded(uint256,uint256)", ["300000", "290000"], 295_000, 330_000],
  ["swallows an inner call that asks for gas", "attempted(uint256)", ["200000"], 200_000, 220_000],
  ["swallows an inner call that uses gas", "attemptedWork(uint256)", ["6"], 35_000, 60_000],
  ["returns the gas that is left", "told()", [], 8_000, 20_000]
]

describe("a call that depends on its gas limit", () => {
  let guard: Contract
  let exchanges: Array<ReadonlyArray<string>> = []
  const exact = { percentUserOpGasOvershoot: Percent.zero }
  const operation = (funcSignature: string, funcParams: ReadonlyArray<string>, salt = "guarded"): Operation =>
    stack.hit(salt, "", { to: Address.unsafe(String(guard.target)), funcSignature, funcParams })
  const stack = useStack({ onExchange: (methods) => exchanges.push(methods) }, async (stack) => {
    const at = await deploy(stack.faucet, initCode("GasGuard"), `0x${"00".repeat(32)}`)
    guard = new Contract(at, artifact("GasGuard").abi, stack.provider)
    await stack.create("guarded", "second")
    // No slot changes from zero any longer.
    for (const settle of ["guarded(uint256)", "attempted(uint256)"])
      await stack.ask(stack.execute([operation(settle, ["1"]), operation(settle, ["1"], "second")], exact))
  })

  const counts = async () => ({
    done: Number(await guard.getFunction("done").staticCall()),
    missed: Number(await guard.getFunction("missed").staticCall())
  })
  /** This many more are done, and none is missed. */
  const doing = async (count: number, work: () => Promise<unknown>) => {
    const { done, missed } = await counts()
    await work()
    expect(await counts()).toEqual({ done: done + count, missed })
  }
  const estimate = (operations: ReadonlyArray<Operation>) => stack.estimate(operations, exact)

  it.each(calls)(
    "succeeds with the least limit and no buffer, also from /estimateGas: it %s",
    (_, name, params, least, most) =>
      doing(2, async () => {
        const executed = await stack.ask(stack.execute([operation(name, params)], exact))
        expect(executed).toMatchObject({ status: 1, returnData: [{ 0: { success: true } }] })
        // In the same block it would write the existing value.
        await stack.mine()
        const { error, userOps } = await estimate([operation(name, params)])
        expect(error).toBeNull()
        const op = Result.getOrThrow(
          UserOperation.decode("v0.7", Hex.unsafe(userOps[0]?.encodedUserOp ?? ""))
        )
        expect(op.callGasLimit).toBeGreaterThanOrEqual(least)
        expect(op.callGasLimit).toBeLessThanOrEqual(most)
        expect(await stack.ask(stack.post(userOps))).toMatchObject({ status: 1 })
      })
  )

  it.each(entryPointVersions)(
    "is executed on EntryPoint %s, also where the operator's paymaster pays",
    (version) =>
      doing(2, async () => {
        const settings = { ...exact, entryPoint: Address.unsafe(entryPoints[version]) }
        const guarded = operation("guarded(uint256)", ["200000"])
        const paymaster = Address.unsafe(stack.suite.paymaster)
        for (const more of [{}, { paymaster }])
          expect((await stack.ask(stack.execute([guarded], { ...settings, ...more }))).status).toBe(1)
      })
  )

  it("costs no more node calls than any other", async () => {
    // The payer does not depend on the amount: a deposit that covers only a small prefund is simulated again.
    const depositTo = new Contract(
      stack.settings.entryPoint,
      ["function depositTo(address) payable"],
      stack.faucet
    ).getFunction("depositTo")
    await (await depositTo.send(stack.predict("guarded"), { value: 10n ** 18n })).wait()
    /** Queried when the last reply is old, by the next caller. */
    const byTheClock = new Set(["eth_getBlockByNumber", "eth_maxPriorityFeePerGas"])
    const readings = (seen: ReadonlyArray<ReadonlyArray<string>>) =>
      seen
        .filter((methods) => methods.includes("eth_call"))
        .map((methods) => methods.filter((method) => !byTheClock.has(method)).sort())
    const asked = async (called: Operation) => {
      exchanges = []
      await stack.ask(stack.execute([called], exact))
      // While it waits for the receipt it polls.
      const polled = exchanges.findIndex((methods) => methods.includes("eth_sendRawTransaction"))
      const executed = readings(exchanges.slice(0, polled))
      exchanges = []
      await estimate([called])
      return { executed, estimated: readings(exchanges) }
    }
    const plain = await asked(operation("done()", []))
    expect(await asked(operation("guarded(uint256)", ["4000000"]))).toEqual(plain)
  })

  it("is measured on the state that the calls before it left, in one transaction", () =>
    doing(3, async () => {
      const operations = [
        operation("attempted(uint256)", ["150000"]),
        operation("guarded(uint256)", ["300000"], "second"),
        operation("done()", []),
        operation("nested(uint256,uint256)", ["10", "50000"], "second")
      ]
      expect(errorsOf(await stack.ask(stack.execute(operations, exact)))).toEqual([null, null, null, null])
    }))

  it("is refused by both when it asks for more than a transaction may have", async () => {
    const tooMuch = operation("guarded(uint256)", ["17000000"])
    const error = expect.stringContaining(guard.interface.getError("TooLittleGas")?.selector ?? "?")
    expect(await estimate([tooMuch])).toMatchObject({ status: 0, error })
    expect((await stack.refused(stack.execute([tooMuch], exact))).details).toMatchObject([{ message: error }])
  })

  it("is executed without a buffer through a node without state overrides and eth_simulateV1", async () => {
    const node = await startFaultyNode(stack.anvil.url)
    node.behave(({ method, params }, ask) => {
      if (method === "eth_simulateV1") return Promise.resolve(refusal(-32601, "the method does not exist"))
      return method === "eth_call" && params.length > 2
        ? Promise.resolve(refusal(-32602, "too many arguments, want at most 2"))
        : ask()
    })
    const settings = { ...stack.settings, ...exact, rpc: node.url }
    await stack.living({ profile: { rpc: Redacted.make(node.url) } }, async (life) => {
      // Such a node reports the gas for a success and not the path taken: the call that branches inside is not known to
      // need more.
      for (const [, name, params] of calls)
        if (name !== "attempted(uint256)")
          await doing(2, async () => {
            const operations = [operation(name, params)]
            expect((await life.runPromise(stack.execute(operations, settings))).status).toBe(1)
            const { error, userOps } = await life.runPromise(
              EstimateGas.run(stack.caller(), { operations, settings })
            )
            expect(error).toBeNull()
            expect((await life.runPromise(stack.post(userOps, null, settings))).status).toBe(1)
          })
    })
    await node.stop()
  })
})
