import * as Redacted from "effect/Redacted"
import { ZeroAddress } from "ethers"
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as GetRequest from "../../../src/application/usecases/operations/GetRequest.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { conditionsOf, type StandIn, startStandIn } from "../../support/bundler/StandIn.js"
import { Address, keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { mined } from "../../support/suite/Receipt.js"

const ether = 10n ** 18n

describe("ops through a bundler of somebody else", () => {
  let bundler: StandIn
  let stack: Stack
  let token: Address.Address
  let recipients = 0
  beforeAll(async () => {
    bundler = await startStandIn()
    stack = await startStack({ profile: { remoteBundler: Redacted.make(bundler.url) } })
    bundler.attach(stack.provider, keyOf(7))
    token = Address.unsafe(await stack.token.getAddress())
  })
  afterAll(async () => {
    await stack.stop()
    await bundler.stop()
  })
  beforeEach(() => bundler.behave(() => ({ does: "submit" })))

  /** An address that has nothing yet. */
  const nobody = () => {
    recipients += 1
    return Address.unsafe(`0x${"d1".repeat(18)}${recipients.toString(16).padStart(4, "0")}`)
  }
  const transfer = (salt: string, amount: string, to: string): Operation => ({
    salt,
    walletCustody: 1,
    to: token,
    funcSignature: "transfer(address,uint256)",
    funcParams: [to, amount]
  })
  const execute = (operations: ReadonlyArray<Operation>, caller: Caller = stack.caller()) =>
    ExecuteOperations.run(caller, { operations, settings: stack.settings })
  /** The request once it is final, of which nothing can land any more. */
  const ended = async (caller: Caller) => {
    await stack.provider.send("evm_increaseTime", [601])
    await stack.provider.send("evm_mine", [])
    const { requestId } = caller
    return await stack.ask(GetRequest.run(caller, { requestId, wait: "30" }))
  }
  const funded = async (salt: string) => {
    const [wallet] = await stack.create(salt)
    await stack.mint(String(wallet), 100n)
    return wallet
  }

  it("a wallet is created and an operation executed; nobody is named who may submit", async () => {
    const salt = "remote"
    await stack.fund(stack.predict(salt), ether)
    const before = await stack.provider.getTransactionCount(stack.signer.address)
    const created = await stack.ask(
      CreateWallets.run(stack.caller(), { accounts: [{ salt, walletCustody: 1 }], settings: stack.settings })
    )
    expect(created.status).toBe(1)
    await stack.mint(stack.predict(salt), 5n)
    const to = nobody()
    const result = await stack.ask(execute([transfer(salt, "5", to)]))
    expect(result).toMatchObject({ status: 1, txHashes: [result.txHash] })
    expect(await stack.balanceOf(to)).toBe(5n)
    const receipt = await stack.provider.getTransactionReceipt(result.txHash)
    expect(receipt?.from).toBe(keyOf(7).address)
    expect(result.gasUsed).toBe(Number(receipt?.gasUsed))
    expect(result.logs.map(({ eventName }) => eventName)).toContain("Transfer")
    expect(result.returnData[0]?.["0"]).toMatchObject({ success: true, txHash: result.txHash })
    expect(await stack.provider.getTransactionCount(stack.signer.address)).toBe(before)
    for (const { op } of bundler.sent.slice(-2)) {
      const { bundler: bound, validUntil } = conditionsOf(op)
      expect(bound).toBe(ZeroAddress)
      expect(validUntil).toBeGreaterThan(0)
    }
  })

  it("a wallet that somebody else deploys with what an op shows is found, and the op that can land no more is given up", async () => {
    const salt = "deployed by another"
    const wallet = stack.predict(salt)
    await stack.fund(wallet, ether)
    bundler.behave(() => ({ does: "lose" }))
    const sent = bundler.sent.length
    const accounts = [{ salt, walletCustody: 1 as const }]
    const answer = stack.ask(CreateWallets.run(stack.caller(), { accounts, settings: stack.settings }))
    await expect.poll(() => bundler.sent.length, { timeout: 10_000 }).toBe(sent + 1)
    const shown = bundler.sent[sent]?.op
    const { factory, factoryData } = shown ?? {}
    await mined(
      await keyOf(6)
        .connect(stack.provider)
        .sendTransaction({ to: String(factory), data: String(factoryData) })
    )
    expect(await stack.provider.getCode(wallet)).not.toBe("0x")
    await stack.provider.send("anvil_mine", ["0x50"])
    expect(await answer).toMatchObject({ status: 2, returnData: [{ "0": { salt, wallet } }] })
    expect(new Set(bundler.sent.slice(sent).map(({ hash }) => hash)).size).toBe(1)
  })

  it.each([
    [-32_500, "AA23 reverted", "validation"],
    [-32_501, "AA33 reverted", "paymaster"],
    [-32_502, "account uses banned opcode: TIMESTAMP", "opcodes"],
    [-32_503, "expires shortly", "time range"],
    [-32_505, "unstaked factory accessed storage", "stake"],
    [-32_506, "unsupported aggregator", "aggregator"],
    [-32_507, "AA24 signature error", "signature"],
    [-32_521, "execution reverted", "execution"],
    [-32_602, "maxFeePerGas must be at least 7", "fields"]
  ])(
    "an op that is refused with %i is unknown at once, with the bundler's words, until it can land no more",
    async (code, message) => {
      const wallet = await funded(`refused ${code}`)
      bundler.behave(() => ({ does: "refuse", code, message }))
      const to = nobody()
      const caller = stack.caller()
      const details = [{ path: "operations[0]", message: `the bundler refused the operation: ${message}` }]
      const failure = await stack.refused(execute([transfer(`refused ${code}`, "1", to)], caller))
      expect(failure).toMatchObject({ _tag: "Unprocessable", code: "outcome_unknown", details })
      const { requestId } = caller
      expect(await stack.ask(GetRequest.run(caller, { requestId }))).toMatchObject({ state: "pending" })
      bundler.behave(() => ({ does: "submit" }))
      expect(await stack.ask(execute([transfer(`refused ${code}`, "2", to)]))).toMatchObject({ status: 1 })
      expect(await stack.balanceOf(to)).toBe(2n)
      expect(await stack.balanceOf(String(wallet))).toBe(98n)
      const sent = bundler.sent.length
      expect(await ended(caller)).toMatchObject({
        state: "final",
        httpStatus: 422,
        answer: { code: "bundler_refused", details }
      })
      expect(bundler.sent.length).toBe(sent)
    }
  )

  it("an op that is refused, and lands all the same, has succeeded", async () => {
    await funded("refused and done")
    bundler.behave(() => ({ does: "refuseAndKeep", code: -32_500, message: "AA23 reverted" }))
    const to = nobody()
    const caller = stack.caller()
    const failure = await stack.refused(execute([transfer("refused and done", "1", to)], caller))
    expect(failure).toMatchObject({ code: "outcome_unknown" })
    await bundler.release()
    const { requestId } = caller
    expect(await stack.ask(GetRequest.run(caller, { requestId, wait: "30" }))).toMatchObject({
      state: "final",
      httpStatus: 200,
      answer: { status: 1, returnData: [{ "0": { success: true } }] }
    })
    expect(await stack.balanceOf(to)).toBe(1n)
  })

  it.each([
    [-32_504, "sender is throttled"],
    [-32_500, "AA25 invalid account nonce"],
    [-32_005, "rate limit exceeded"]
  ])("a refusal for the moment (%i %s) is followed by another attempt", async (code, message) => {
    await funded(`moment ${code}`)
    const first = bundler.sent.length
    bundler.behave((_, turn) => (turn < first + 2 ? { does: "refuse", code, message } : { does: "submit" }))
    const to = nobody()
    const result = await stack.ask(execute([transfer(`moment ${code}`, "3", to)]))
    expect(result.status).toBe(1)
    expect(await stack.balanceOf(to)).toBe(3n)
    expect(bundler.sent.length).toBe(first + 3)
    expect(new Set(bundler.sent.slice(first).map(({ hash }) => hash)).size).toBe(1)
  })

  it.each(["submitAndCut", "cut"] as const)(
    "an answer that is lost (%s) leaves the op on its way: it is done once",
    async (does) => {
      await funded(does)
      const first = bundler.sent.length
      bundler.behave((_, turn) => (turn === first ? { does } : { does: "submit" }))
      const to = nobody()
      const result = await stack.ask(execute([transfer(does, "4", to)]))
      expect(result.status).toBe(1)
      expect(await stack.balanceOf(to)).toBe(4n)
      const own = bundler.sent.slice(first)
      expect(new Set(own.map(({ op }) => JSON.stringify(op))).size).toBe(1)
      expect(own.length).toBe(does === "cut" ? 2 : 1)
    }
  )

  it("an op that the bundler has lost is given to it again, byte for byte", async () => {
    await funded("lost")
    const first = bundler.sent.length
    bundler.behave((_, turn) => (turn < first + 2 ? { does: "lose" } : { does: "submit" }))
    const to = nobody()
    expect(await stack.ask(execute([transfer("lost", "5", to)]))).toMatchObject({ status: 1 })
    expect(await stack.balanceOf(to)).toBe(5n)
    const own = bundler.sent.slice(first)
    expect(own.length).toBe(3)
    expect(new Set(own.map(({ op }) => JSON.stringify(op))).size).toBe(1)
  })

  it("an op that lands late, or in somebody else's bundle, is found by its hash", async () => {
    await funded("late")
    bundler.behave(() => ({ does: "keep" }))
    const first = bundler.sent.length
    const to = nobody()
    const answer = stack.ask(execute([transfer("late", "6", to)]))
    await expect.poll(() => bundler.sent.length, { timeout: 10_000 }).toBe(first + 1)
    expect(await stack.balanceOf(to)).toBe(0n)
    await bundler.release()
    const result = await answer
    expect(result.status).toBe(1)
    expect(await stack.balanceOf(to)).toBe(6n)
    expect(bundler.sent.length).toBe(first + 1)
  })

  it("of several ops the refused one fails alone; those of its nonce key behind it go later", async () => {
    await funded("first")
    await funded("second")
    const start = bundler.sent.length
    bundler.behave((_, turn) =>
      turn === start ? { does: "refuse", code: -32_500, message: "AA23 reverted" } : { does: "submit" }
    )
    const [one, two, three] = [nobody(), nobody(), nobody()]
    const caller = stack.caller()
    const operations = [
      transfer("first", "1", one),
      transfer("first", "2", two),
      transfer("second", "3", three)
    ]
    const failure = await stack.refused(execute(operations, caller))
    const error = "the bundler refused the operation: AA23 reverted"
    expect(failure).toMatchObject({
      code: "outcome_unknown",
      details: [{ path: "operations[0]", message: error }]
    })
    expect(await Promise.all([one, two, three].map(stack.balanceOf))).toEqual([0n, 2n, 3n])
    const second = stack.predict("second")
    const senders = bundler.sent.slice(start).map(({ op }) => op.sender)
    expect(senders).toEqual([stack.predict("first"), second, stack.predict("first")])
    expect(await ended(caller)).toMatchObject({
      state: "final",
      answer: {
        status: 4,
        returnData: [
          { "0": { success: false, error } },
          { "1": { success: true } },
          { "2": { success: true } }
        ]
      }
    })
  })

  it("several ops of one wallet in one request, each after the other", async () => {
    await funded("row")
    const to = nobody()
    const result = await stack.ask(
      execute([transfer("row", "1", to), transfer("row", "2", to), transfer("row", "3", to)])
    )
    expect(result.status).toBe(1)
    expect(await stack.balanceOf(to)).toBe(6n)
    expect(result.txHashes.length).toBe(3)
  })

  it("the bundler's preVerificationGas is in the op", async () => {
    await funded("demanding")
    bundler.demand(123_456n)
    try {
      const to = nobody()
      expect(await stack.ask(execute([transfer("demanding", "1", to)]))).toMatchObject({ status: 1 })
      expect(BigInt(bundler.sent.at(-1)?.op.preVerificationGas ?? 0)).toBe(123_456n)
    } finally {
      bundler.demand(0n)
    }
  })

  it("an op whose time is over goes again, as another one", async () => {
    await funded("over")
    const first = bundler.sent.length
    bundler.behave((_, turn) => (turn === first ? { does: "lose" } : { does: "submit" }))
    const to = nobody()
    const answer = stack.ask(execute([transfer("over", "7", to)]))
    await expect.poll(() => bundler.sent.length, { timeout: 10_000 }).toBe(first + 1)
    await stack.provider.send("evm_increaseTime", [601])
    await stack.provider.send("evm_mine", [])
    expect(await answer).toMatchObject({ status: 1 })
    expect(await stack.balanceOf(to)).toBe(7n)
    const [lost, again] = bundler.sent.slice(first)
    expect(bundler.sent.length).toBe(first + 2)
    expect(again?.op.signature).not.toBe(lost?.op.signature)
  })

  it("many requests at once are all done, each once", async () => {
    const salts = Array.from({ length: 5 }, (_, n) => `crowd ${n}`)
    for (const salt of salts) await funded(salt)
    const to = nobody()
    const results = await Promise.all(
      salts.flatMap((salt) => [1, 2].map(() => stack.ask(execute([transfer(salt, "1", to)]))))
    )
    expect(results.map(({ status }) => status)).toEqual(results.map(() => 1))
    expect(await stack.balanceOf(to)).toBe(10n)
  })

  it("an estimate names nobody who must submit, and the op that is signed over its hash goes through", async () => {
    const wallet = await funded("encoded")
    const to = nobody()
    const estimate = await stack.ask(
      EstimateGas.run(stack.caller(), {
        operations: [transfer("encoded", "8", to)],
        settings: stack.settings
      })
    )
    const [op] = estimate.userOps
    expect(op).toMatchObject({ bundler: ZeroAddress, signingHash: op?.userOpHash })
    const hash = Hex.unsafe32(op?.userOpHash ?? "")
    const signature = Hex.unsafe(stack.signer.signingKey.sign(hash).serialized)
    const request = {
      operations: [
        {
          encodedUserOp: Hex.unsafe(op?.encodedUserOp ?? ""),
          userOpHash: hash,
          walletCustody: 1 as const,
          signature
        }
      ],
      settings: stack.settings
    }
    const result = await stack.ask(ExecuteEncoded.run(stack.caller(), request))
    expect(result.status).toBe(1)
    expect(await stack.balanceOf(to)).toBe(8n)
    expect(await stack.balanceOf(String(wallet))).toBe(92n)
    const again = await stack.ask(ExecuteEncoded.run(stack.caller(), request))
    expect(again.returnData).toMatchObject([{ "0": { success: true, txHash: result.txHash } }])
    expect(await stack.balanceOf(to)).toBe(8n)
  })
})
