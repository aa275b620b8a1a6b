import * as Either from "effect/Either"
import * as Redacted from "effect/Redacted"
import { Contract } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import { versions } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { artifact, initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { type FaultyNode, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

/** Calls that need more gas than they use, or do something else with less, and the least that each can do with. */
const calls: ReadonlyArray<
  readonly [string, string, ReadonlyArray<string>, { readonly least: number; readonly most: number }]
> = [
  ["asks for 50,000 gas left", "guarded(uint256)", ["50000"], { least: 50_000, most: 60_000 }],
  ["asks for 200,000 gas left", "guarded(uint256)", ["200000"], { least: 200_000, most: 215_000 }],
  ["asks for 4,000,000 gas left", "guarded(uint256)", ["4000000"], { least: 4e6, most: 42e5 }],
  ["lies 30 calls deep", "nested(uint256,uint256)", ["30", "100000"], { least: 160_000, most: 230_000 }],
  [
    "forwards a fixed amount of gas",
    "forwarded(uint256,uint256)",
    ["300000", "290000"],
    { least: 295_000, most: 330_000 }
  ],
  [
    "swallows the failure of an inner call that asks for gas",
    "attempted(uint256)",
    ["200000"],
    { least: 200_000, most: 220_000 }
  ],
  [
    "swallows the failure of an inner call that uses gas",
    "attemptedWork(uint256)",
    ["6"],
    { least: 35_000, most: 60_000 }
  ],
  ["returns the gas that is left", "told()", [], { least: 8_000, most: 20_000 }]
]

describe.each(versions)("a call that hangs on the gas it is given, on EntryPoint %s", (version) => {
  let stack: Stack
  let guard: Contract
  let exchanges: Array<ReadonlyArray<string>> = []
  beforeAll(async () => {
    stack = await startStack({
      entryPoint: version,
      onExchange: (methods) => {
        exchanges.push(methods)
      }
    })
    const at = await deploy(stack.faucet, initCode("GasGuard"), `0x${"00".repeat(32)}`)
    guard = new Contract(at, artifact("GasGuard").abi, stack.provider)
    await stack.create("guarded", "second")
    // No slot changes from zero any more.
    for (const settle of ["guarded(uint256)", "attempted(uint256)"])
      await stack.ask(
        ExecuteOperations.run(stack.caller(), {
          operations: [operation(settle, ["1"]), operation(settle, ["1"], "second")],
          settings: exact()
        })
      )
  }, 60_000)
  afterAll(() => stack.stop())

  const operation = (
    funcSignature: string,
    funcParams: ReadonlyArray<string>,
    salt = "guarded"
  ): Operation => ({
    salt,
    walletCustody: 1,
    to: Address.unsafe(String(guard.target)),
    funcSignature,
    funcParams
  })
  const exact = () => ({ ...stack.settings, percentUserOpGasOvershoot: Percent.zero })
  const counts = async () => ({
    done: Number(await guard.getFunction("done").staticCall()),
    missed: Number(await guard.getFunction("missed").staticCall())
  })
  const plusOne = async (before: { readonly done: number; readonly missed: number }) =>
    expect(await counts()).toEqual({ done: before.done + 1, missed: before.missed })

  const estimate = (operations: ReadonlyArray<Operation>, settings: object = {}) =>
    stack.ask(EstimateGas.run(stack.caller(), { operations, settings: { ...exact(), ...settings } }))
  const encoded = (userOps: EstimateGas.Response["userOps"], settings: object = {}) =>
    stack.ask(
      ExecuteEncoded.run(stack.caller(), {
        operations: userOps.map(({ encodedUserOp, userOpHash }) => ({
          encodedUserOp: Hex.unsafe(encodedUserOp),
          userOpHash: Hex.unsafe32(userOpHash),
          walletCustody: 1 as const
        })),
        settings: { ...stack.settings, ...settings }
      })
    )
  const limitOf = (userOps: EstimateGas.Response["userOps"]) =>
    Number(
      Either.getOrThrow(UserOperation.decode(version, Hex.unsafe(userOps[0]?.encodedUserOp ?? "")))
        .callGasLimit
    )

  it.each(calls)("which %s, is executed with the least limit and no buffer", async (_, name, params) => {
    const before = await counts()
    const executed = await stack.ask(
      ExecuteOperations.run(stack.caller(), { operations: [operation(name, params)], settings: exact() })
    )
    expect(executed).toMatchObject({ status: 1, returnData: [{ 0: { success: true } }] })
    await plusOne(before)
  })

  it.each(calls)(
    "which %s, gets the least limit of /estimateGas, and is executed with it",
    async (_, name, params, { least, most }) => {
      const before = await counts()
      const estimated = await estimate([operation(name, params)])
      expect(estimated).toMatchObject({ status: 1, error: null })
      const limit = limitOf(estimated.userOps)
      expect(limit).toBeGreaterThanOrEqual(least)
      expect(limit).toBeLessThanOrEqual(most)
      expect(await encoded(estimated.userOps)).toMatchObject({ status: 1 })
      await plusOne(before)
    }
  )

  it.each(calls)("which %s, is executed where the operator's paymaster pays", async (_, name, params) => {
    const before = await counts()
    const settings = { ...exact(), paymaster: Address.unsafe(stack.suite.paymaster) }
    const executed = await stack.ask(
      ExecuteOperations.run(stack.caller(), { operations: [operation(name, params)], settings })
    )
    expect(executed).toMatchObject({ status: 1 })
    await plusOne(before)
  })

  it("costs no more requests to the node than any other", async () => {
    // Who pays does not depend on how much: a deposit that only a small prefund is in is worth another look.
    const entryPoint = new Contract(
      stack.settings.entryPoint,
      ["function depositTo(address) payable"],
      stack.faucet
    )
    const deposit = entryPoint.getFunction("depositTo")
    await (await deposit.send(stack.predict("guarded"), { value: 10n ** 18n })).wait()
    /** Asked when the last answer is old, by whoever comes then. */
    const byTheClock = new Set(["eth_getBlockByNumber", "eth_maxPriorityFeePerGas"])
    const readings = (seen: ReadonlyArray<ReadonlyArray<string>>) =>
      seen
        .filter((methods) => methods.includes("eth_call"))
        .map((methods) => methods.filter((method) => !byTheClock.has(method)).sort())
    const asked = async (name: string, params: ReadonlyArray<string>) => {
      exchanges = []
      await stack.ask(
        ExecuteOperations.run(stack.caller(), { operations: [operation(name, params)], settings: exact() })
      )
      // While it waits for the receipt it polls.
      const polled = exchanges.findIndex((methods) => methods.includes("eth_sendRawTransaction"))
      const executed = readings(exchanges.slice(0, polled))
      exchanges = []
      await estimate([operation(name, params)])
      return { executed, estimated: readings(exchanges) }
    }
    const plain = await asked("done()", [])
    expect(await asked("guarded(uint256)", ["4000000"])).toEqual(plain)
  })

  it("is measured on the state that the calls before it left, in one transaction", async () => {
    const before = await counts()
    const executed = await stack.ask(
      ExecuteOperations.run(stack.caller(), {
        operations: [
          operation("attempted(uint256)", ["150000"]),
          operation("guarded(uint256)", ["300000"], "second"),
          operation("done()", []),
          operation("nested(uint256,uint256)", ["10", "50000"], "second")
        ],
        settings: exact()
      })
    )
    expect(executed).toMatchObject({ status: 1 })
    expect(await counts()).toEqual({ done: before.done + 3, missed: before.missed })
  })

  it("is refused by both when it asks for more than a transaction may have", async () => {
    const tooMuch = operation("guarded(uint256)", ["17000000"])
    const tooLittleGas = guard.interface.getError("TooLittleGas")?.selector ?? ""
    expect(await estimate([tooMuch])).toMatchObject({
      status: 0,
      error: expect.stringContaining(tooLittleGas)
    })
    const failure = await stack.refused(
      ExecuteOperations.run(stack.caller(), { operations: [tooMuch], settings: exact() })
    )
    expect(JSON.stringify(failure)).toContain(tooLittleGas)
  })

  describe("through a node without state overrides and eth_simulateV1", () => {
    let node: FaultyNode
    beforeAll(async () => {
      node = await startFaultyNode(stack.anvil.url)
      node.behave((question, ask) => {
        if (question.method === "eth_simulateV1")
          return Promise.resolve(refusal(-32601, "the method does not exist"))
        return question.method === "eth_call" && question.params.length > 2
          ? Promise.resolve(refusal(-32602, "too many arguments, want at most 2"))
          : ask()
      })
    })
    afterAll(() => node.stop())

    // Such a node tells with how much a call succeeds, not whether it then took another way: the last but one is not
    // known to need more, unless what fails inside uses the gas.
    const told = calls.filter(([, name]) => name !== "attempted(uint256)")

    it.each(told)("which %s, is executed without a buffer", async (_, name, params) => {
      const life = stack.begin({ profile: { rpc: Redacted.make(node.url) } })
      try {
        const settings = { ...exact(), rpc: node.url, entryPoint: Address.unsafe(entryPoints[version]) }
        const before = await counts()
        const executed = await life.runPromise(
          ExecuteOperations.run(stack.caller(), { operations: [operation(name, params)], settings })
        )
        expect(executed).toMatchObject({ status: 1 })
        await plusOne(before)
        const estimated = await life.runPromise(
          EstimateGas.run(stack.caller(), { operations: [operation(name, params)], settings })
        )
        expect(estimated).toMatchObject({ status: 1, error: null })
        const sent = await life.runPromise(
          ExecuteEncoded.run(stack.caller(), {
            operations: estimated.userOps.map(({ encodedUserOp, userOpHash }) => ({
              encodedUserOp: Hex.unsafe(encodedUserOp),
              userOpHash: Hex.unsafe32(userOpHash),
              walletCustody: 1 as const
            })),
            settings
          })
        )
        expect(sent).toMatchObject({ status: 1 })
        expect(await counts()).toEqual({ done: before.done + 2, missed: before.missed })
      } finally {
        await life.dispose()
      }
    })
  })
})
