import { readFileSync } from "node:fs"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Contract, dataSlice, Interface, toQuantity } from "ethers"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/endpoints/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import type { Failure } from "../../../src/application/failures/Failure.js"
import type { Fields } from "../../../src/application/ports/NetworkProfile.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { initCode } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { deploy } from "../../../src/hosts/cli/deploy/DeterministicDeployer.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Known from "../../support/stack/Known.js"
import { type Sponsored, sponsored } from "../../support/stack/Sponsored.js"
import { Address, type Ports, type Runtime, startStack } from "../../support/stack/Stack.js"
import { use } from "../../support/Use.js"
import { npmInterface } from "../lens/Abis.js"
import { type Answer, commitment, type Method, type Service, startService } from "./PaymasterService.js"

const salt = `0x${"00".repeat(32)}`
const deposits = new Interface([
  "function depositTo(address) payable",
  "function balanceOf(address) view returns (uint256)"
])

describe("a paymaster with a service", () => {
  const stack = use(startStack)
  let sponsor: Sponsored
  let service: Service
  let life: Runtime
  let profile: Fields
  let paymaster: Address.Address
  beforeAll(async () => {
    sponsor = await sponsored(stack)
    paymaster = Address.unsafe(await deploy(stack.faucet, initCode("OpenPaymaster"), salt))
    for (const entryPoint of Object.values(entryPoints))
      await (
        await new Contract(entryPoint, deposits, stack.faucet).getFunction("depositTo")(paymaster, {
          value: 10n ** 18n
        })
      ).wait()
    service = await startService({ paymaster, v06: entryPoints["v0.6"], chainId: stack.anvil.chainId })
    profile = {
      paymasterServices: [
        {
          paymaster,
          url: Redacted.make(service.url),
          context: Redacted.make({ policy: "ours", token: { secret: "open sesame" } }),
          callerContext: ["order", "policy"]
        }
      ]
    }
    life = stack.begin({ profile })
    await stack.create("main")
    await stack.fund(stack.predict("main"), 0n)
  })
  beforeEach(() => service.behave())
  afterAll(async () => {
    await life.dispose()
    await service.stop()
  })

  const request = (more: object = {}) => ({
    operations: [sponsor.mint("main", 1n)],
    settings: { ...stack.settings, paymaster, ...more }
  })
  const refused = <A, R extends Ports>(effect: Effect.Effect<A, Failure, R>): Promise<Failure> =>
    life.runPromise(Effect.flip(effect))
  /** The op that a transaction carried, as stored on the chain. */
  const carried = async (version: (typeof entryPointVersions)[number], txHash: string) => {
    const transaction = await stack.provider.getTransaction(txHash)
    const parsed = npmInterface(version, "EntryPoint").parseTransaction({ data: transaction?.data ?? "0x" })
    const [op] = parsed?.args[0] ?? []
    const limits =
      version === "v0.6"
        ? [op.callGasLimit, op.verificationGasLimit, op.maxFeePerGas, op.maxPriorityFeePerGas]
        : [
            dataSlice(op.accountGasLimits, 16),
            dataSlice(op.accountGasLimits, 0, 16),
            dataSlice(op.gasFees, 16),
            dataSlice(op.gasFees, 0, 16)
          ].map(BigInt)
    const [callGasLimit, verificationGasLimit, maxFeePerGas, maxPriorityFeePerGas] = limits.map((each) =>
      toQuantity(each)
    )
    return {
      paymaster: Address.unsafe(dataSlice(op.paymasterAndData, 0, 20)),
      data: dataSlice(op.paymasterAndData, version === "v0.6" ? 20 : 52),
      commitment: commitment({
        sender: op.sender,
        nonce: toQuantity(op.nonce),
        callData: op.callData,
        callGasLimit: String(callGasLimit),
        verificationGasLimit: String(verificationGasLimit),
        preVerificationGas: toQuantity(op.preVerificationGas),
        maxFeePerGas: String(maxFeePerGas),
        maxPriorityFeePerGas: String(maxPriorityFeePerGas)
      })
    }
  }

  it.each(entryPointVersions)(
    "pays on EntryPoint %s for a wallet without a wei, with data for exactly the sent op",
    async (version) => {
      const minted = await sponsor.minted()
      const { status, txHash } = await life.runPromise(
        ExecuteOperations.run(stack.caller(), request({ entryPoint: entryPoints[version] }))
      )
      expect(status).toBe(1)
      expect((await sponsor.minted()) - minted).toBe(1n)
      const op = await carried(version, txHash)
      expect(op.paymaster.toLowerCase()).toBe(paymaster.toLowerCase())
      expect(op.data).toBe(op.commitment)
    }
  )

  it("pays for an op that was issued with its final data", async () => {
    const { error, userOps } = await life.runPromise(EstimateGas.run(stack.caller(), request()))
    expect(error).toBeNull()
    const asked = service.asked.length
    const { status, txHash } = await life.runPromise(
      ExecuteEncoded.run(stack.caller(), {
        operations: userOps.map(({ encodedUserOp, userOpHash }) => ({
          encodedUserOp: Hex.unsafe(encodedUserOp),
          userOpHash: Hex.unsafe32(userOpHash),
          walletCustody: 1 as const
        })),
        settings: stack.settings
      })
    )
    expect(status).toBe(1)
    const op = await carried("v0.7", txHash)
    expect(op.data).toBe(op.commitment)
    expect(service.asked.length).toBe(asked)
  })

  const paymasterContext = { order: { id: 7 }, policy: "the caller's" }
  const context = { order: { id: 7 }, policy: "ours", token: { secret: "open sesame" } }
  const contexts = (from: number) => service.asked.slice(from).map((each) => [each.method, each.context])
  const everyCall = [
    ["pm_getPaymasterStubData", context],
    ["pm_getPaymasterData", context]
  ]

  it("gets one context in both calls: the operator's members and the permitted ones of the caller", async () => {
    const before = service.asked.length
    await life.runPromise(EstimateGas.run(stack.caller(), request({ paymasterContext })))
    expect(contexts(before)).toEqual(everyCall)
    const { status } = await life.runPromise(
      ExecuteOperations.run(stack.caller(), request({ paymasterContext }))
    )
    expect(status).toBe(1)
    expect(contexts(before + 2)).toEqual(everyCall)
    await life.runPromise(EstimateGas.run(stack.caller(), request()))
    expect(service.asked.at(-1)?.context).toEqual({ policy: "ours", token: { secret: "open sesame" } })
  })

  it.each<[string, () => object, string, RegExp]>([
    [
      "a member that the operator does not permit",
      () => ({ paymasterContext: { "a.b": 1 } }),
      'settings.paymasterContext["a.b"]',
      /the operator does not permit this member/
    ],
    [
      "a paymaster without a service",
      () => ({ paymasterContext, paymaster: stack.suite.paymaster }),
      "settings.paymasterContext",
      /has a service/
    ]
  ])("refuses a context with %s", async (_, more, path, message) => {
    const failure = await refused(ExecuteOperations.run(stack.caller(), request(more())))
    expect(failure).toMatchObject({ code: "invalid_request", details: [{ path }] })
    expect(failure.details[0]?.message).toMatch(message)
  })

  it("refuses a context for ops that are built already", async () => {
    const { userOps } = await life.runPromise(EstimateGas.run(stack.caller(), request()))
    const operations = userOps.map(({ encodedUserOp, userOpHash }) => ({
      encodedUserOp: Hex.unsafe(encodedUserOp),
      userOpHash: Hex.unsafe32(userOpHash),
      walletCustody: 1 as const
    }))
    const { settings } = request({ paymasterContext })
    for (const named of [settings, { ...stack.settings, paymasterContext }])
      expect(
        await refused(ExecuteEncoded.run(stack.caller(), { operations, settings: named }))
      ).toMatchObject({ code: "invalid_request", details: [{ path: "settings.paymasterContext" }] })
  })

  it("is not called again for data that its stub calls final", async () => {
    const data = `0x${"cd".repeat(40)}`
    service.behave(() => ({ result: { paymaster, paymasterData: data, isFinal: true } }))
    const before = service.asked.length
    const { txHash } = await life.runPromise(ExecuteOperations.run(stack.caller(), request()))
    expect((await carried("v0.7", txHash)).data).toBe(data)
    // Before the op is measured, and once its nonce and its limits are final.
    expect(service.asked.slice(before).map(({ method }) => method)).toEqual([
      "pm_getPaymasterStubData",
      "pm_getPaymasterStubData"
    ])
  })

  it("gets an op that pays for the most expensive data of its stub's length", async () => {
    const size = 2_000
    service.behave((method) => ({
      result: {
        paymaster,
        paymasterData: `0x${(method === "pm_getPaymasterStubData" ? "00" : "cd").repeat(size)}`
      }
    }))
    const { txHash } = await life.runPromise(ExecuteOperations.run(stack.caller(), request()))
    const receipt = await stack.provider.getTransactionReceipt(txHash)
    const transaction = await stack.provider.getTransaction(txHash)
    const [log] =
      receipt?.logs
        .flatMap((each) => npmInterface("v0.7", "EntryPoint").parseLog(each) ?? [])
        .filter(({ name }) => name === "UserOperationEvent") ?? []
    expect(transaction?.data).toContain("cd".repeat(size))
    // The op was charged its transaction's gas, including the more expensive bytes.
    expect(log?.args.getValue("actualGasUsed")).toBeGreaterThanOrEqual(receipt?.gasUsed ?? 0n)
  })

  const stub = { paymasterData: `0x${"ab".repeat(32)}` }
  it.each<[string, (method: Method) => Answer | null, string, RegExp]>([
    [
      "refuses, in its own words",
      () => ({ error: { code: -32_000, message: "this wallet is not on the list" } }),
      "paymaster_refused",
      /^the paymaster's service refused the operation: .*this wallet is not on the list$/
    ],
    [
      "quotes the operator's context",
      () => ({ error: { code: -32_000, message: 'no policy for {"secret":"open sesame"}' } }),
      "paymaster_refused",
      /no policy for \{"secret":"\.\.\."\}$/
    ],
    [
      "refuses what it gave a stub for",
      (method) =>
        method === "pm_getPaymasterData" ? { error: { code: -32_000, message: "out of money" } } : null,
      "paymaster_refused",
      /out of money$/
    ],
    [
      "answers for another paymaster",
      () => ({ result: { ...stub, paymaster: `0x${"11".repeat(20)}` } }),
      "paymaster_refused",
      /answered for paymaster 0x1111/
    ],
    [
      "gives longer data than its stub",
      (method) =>
        method === "pm_getPaymasterData"
          ? { result: { paymaster, paymasterData: `0x${"ee".repeat(33)}` } }
          : null,
      "paymaster_refused",
      /33 bytes of data after a stub of 32$/
    ],
    [
      "raises its limits after its stub",
      (method) =>
        method === "pm_getPaymasterData"
          ? { result: { ...stub, paymaster, paymasterVerificationGasLimit: "0xffffff" } }
          : null,
      "paymaster_refused",
      /raised its gas limits/
    ],
    ["answers nonsense", () => ({ result: { paymaster: 7 } }), "paymaster_unavailable", /notAnRpc$/],
    [
      "answers with more data than any paymaster needs",
      () => ({ result: { paymaster, paymasterData: `0x${"00".repeat(5_000)}` } }),
      "paymaster_refused",
      /expected at most 4096 bytes of the paymaster's data, but there are 5000$/
    ],
    [
      "asks for limits that no op has",
      () => ({ result: { ...stub, paymaster, paymasterPostOpGasLimit: `0x${"f".repeat(32)}` } }),
      "paymaster_unavailable",
      /notAnRpc$/
    ],
    [
      "is not a service at all",
      () => ({ status: 500, body: "<html>oh no</html>" }),
      "paymaster_unavailable",
      /(?:unreachable|notAnRpc)$/
    ]
  ])("is a 422 with that reason when it %s, and no transaction is sent", async (_, answer, code, words) => {
    service.behave((method) => answer(method))
    const nonce = await stack.provider.getTransactionCount(stack.signer.address)
    const failure = await refused(ExecuteOperations.run(stack.caller(), request()))
    expect({ tag: failure._tag, code: failure.code }).toEqual({ tag: "Unprocessable", code })
    expect(failure.message).toMatch(words)
    expect(JSON.stringify(failure)).not.toContain("secret-key")
    expect(await stack.provider.getTransactionCount(stack.signer.address)).toBe(nonce)
  })

  // Last: the other process's nonces are foreign to this one.
  it("gets the same context after a restart, which no row of the journal shows", async () => {
    const [database, operations] = [stack.database(), [sponsor.mint("main", 77n)]]
    const caller = stack.caller()
    const before = service.asked.length
    const first = stack.begin({ profile, database, ownsLanes: false })
    await Known.past(stack, first)
    await new Promise<void>((resolve, reject) => {
      const asked: Caller = { ...caller, isAsynchronous: true, onAccepted: () => resolve() }
      const order = { ...paymasterContext, order: "a private order" }
      first
        .runPromise(ExecuteOperations.run(asked, { ...request({ paymasterContext: order }), operations }))
        .catch((error) => reject(error))
    })
    await first.dispose()
    expect(service.asked.slice(before).map(({ method }) => method)).toEqual(["pm_getPaymasterStubData"])
    const stored = readFileSync(database).toString("latin1")
    for (const text of ["a private order", "the caller's", "open sesame"]) expect(stored).not.toContain(text)
    await stack.living({ profile, database }, async (second) => {
      expect(await stack.answerOf(second, caller.requestId)).toMatchObject({ answer: { status: 1 } })
    })
    const order = { ...context, order: "a private order" }
    expect(contexts(before)).toEqual([
      ["pm_getPaymasterStubData", order],
      // The next process has not seen the stub.
      ["pm_getPaymasterStubData", order],
      ["pm_getPaymasterData", order]
    ])
  })
})
