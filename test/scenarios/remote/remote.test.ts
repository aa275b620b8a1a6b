import { ZeroAddress } from "ethers"
import { describe, expect, it } from "vitest"
import * as GetRequest from "../../../src/application/endpoints/operations/GetRequest.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import { conditionsOf } from "../../support/bundler/StandIn.js"
import { keyOf } from "../../support/stack/Stack.js"
import { mined } from "../../support/suite/Receipt.js"
import { useRemote } from "./support.js"

const ether = 10n ** 18n

describe("ops through an external bundler", () => {
  const { behave, bundler, different, given, sent, stack } = useRemote({}, () => Promise.resolve())
  let recipients = 0
  /** An empty address. */
  const nobody = () => `0x${"d1".repeat(18)}${(0x1000 + recipients++).toString(16)}`
  const execute = (salt: string, amount: string, to: string, caller?: Caller) =>
    stack.execute([stack.transfer(salt, to, amount)], {}, caller)
  const executed = (salt: string, amount: string, to: string) => stack.ask(execute(salt, amount, to))
  const stateOf = (caller: Caller, wait: object = {}) =>
    stack.ask(GetRequest.run(caller, { requestId: caller.requestId, ...wait }))
  /** The final request, once its ops can no longer land. */
  const ended = async (caller: Caller) => {
    await stack.later(601)
    return stateOf(caller, { wait: "30" })
  }
  const funded = async (salt: string) => {
    const [wallet = ""] = await stack.create(salt)
    await stack.mint(wallet, 100n)
    return wallet
  }

  it("a wallet is created and an operation executed without a named submitter", async () => {
    const salt = "remote"
    await stack.fund(stack.predict(salt), ether)
    const before = await stack.nonce()
    expect((await stack.ask(stack.createWallets([salt]))).status).toBe(1)
    await stack.mint(stack.predict(salt), 5n)
    const to = nobody()
    const result = await executed(salt, "5", to)
    const receipt = await stack.provider.getTransactionReceipt(result.txHash)
    expect(receipt?.from).toBe(keyOf(7).address)
    const { txHash } = result
    expect(result).toMatchObject({
      status: 1,
      txHashes: [txHash],
      gasUsed: Number(receipt?.gasUsed),
      returnData: [{ "0": { success: true, txHash } }]
    })
    expect(result.logs.map(({ eventName }) => eventName)).toContain("Transfer")
    expect([await stack.balanceOf(to), await stack.nonce()]).toEqual([5n, before])
    for (const { op } of sent()) {
      const { bundler: bound, validUntil } = conditionsOf(op)
      expect(bound).toBe(ZeroAddress)
      expect(validUntil).toBeGreaterThan(0)
    }
  })

  it("a wallet that another party deploys from an op's public data is found, and the op that can no longer land is abandoned", async () => {
    const salt = "deployed by another"
    const wallet = stack.predict(salt)
    await stack.fund(wallet, ether)
    behave(() => ({ does: "lose" }))
    const answer = stack.ask(stack.createWallets([salt]))
    await given(1)
    const { factory, factoryData } = sent()[0]?.op ?? {}
    const stranger = keyOf(6).connect(stack.provider)
    await mined(await stranger.sendTransaction({ to: String(factory), data: String(factoryData) }))
    expect(await stack.provider.getCode(wallet)).not.toBe("0x")
    await stack.provider.send("anvil_mine", ["0x50"])
    expect(await answer).toMatchObject({ status: 2, returnData: [{ "0": { salt, wallet } }] })
    expect(different()).toBe(1)
  })

  it.each([
    [-32_500, "AA23 reverted"],
    [-32_507, "AA24 signature error"]
  ])(
    "an op refused with %i is unknown immediately, with the bundler's words, until it can no longer land",
    async (code, message) => {
      const salt = `refused ${code}`
      const wallet = await funded(salt)
      behave(() => ({ does: "refuse", code, message }))
      const [to, caller] = [nobody(), stack.caller()]
      const details = [{ path: "operations[0]", message: `the bundler refused the operation: ${message}` }]
      const failure = await stack.refused(execute(salt, "1", to, caller))
      expect(failure).toMatchObject({ _tag: "Unprocessable", code: "outcome_unknown", details })
      expect(await stateOf(caller)).toMatchObject({ state: "pending" })
      behave(() => ({ does: "submit" }))
      expect(await executed(salt, "2", to)).toMatchObject({ status: 1 })
      expect([await stack.balanceOf(to), await stack.balanceOf(wallet)]).toEqual([2n, 98n])
      const before = sent().length
      expect(await ended(caller)).toMatchObject({
        state: "final",
        httpStatus: 422,
        answer: { code: "bundler_refused", details }
      })
      expect(sent()).toHaveLength(before)
    }
  )

  it("an op that is refused and still lands has succeeded", async () => {
    await funded("refused and done")
    behave(() => ({ does: "refuseAndKeep", code: -32_500, message: "AA23 reverted" }))
    const [to, caller] = [nobody(), stack.caller()]
    expect(await stack.refused(execute("refused and done", "1", to, caller))).toMatchObject({
      code: "outcome_unknown"
    })
    await bundler.release()
    expect(await stateOf(caller, { wait: "30" })).toMatchObject({
      state: "final",
      httpStatus: 200,
      answer: { status: 1, returnData: [{ "0": { success: true } }] }
    })
    expect(await stack.balanceOf(to)).toBe(1n)
  })

  it.each([
    ["refused for the moment", { does: "refuse", code: -32_005, message: "rate limit exceeded" }, 2],
    ["lost", { does: "lose" }, 2],
    ["cut before it is taken", { does: "cut" }, 1],
    ["taken, and the answer lost", { does: "submitAndCut" }, 1]
  ] as const)(
    "an op that is %s is sent again, byte for byte, and done once",
    async (salt, conduct, times) => {
      await funded(salt)
      const first = sent().length
      behave((turn) => (turn < first + times ? conduct : { does: "submit" }))
      const to = nobody()
      expect((await executed(salt, "4", to)).status).toBe(1)
      expect(await stack.balanceOf(to)).toBe(4n)
      const own = sent().slice(first)
      expect(own).toHaveLength(conduct.does === "submitAndCut" ? 1 : times + 1)
      expect(new Set(own.map(({ op }) => JSON.stringify(op))).size).toBe(1)
    }
  )

  it("an op that lands late, or in another party's bundle, is found by its hash", async () => {
    await funded("late")
    const first = sent().length
    behave(() => ({ does: "keep" }))
    const to = nobody()
    const answer = executed("late", "6", to)
    await given(first + 1)
    expect(await stack.balanceOf(to)).toBe(0n)
    await bundler.release()
    expect((await answer).status).toBe(1)
    expect([await stack.balanceOf(to), sent().length]).toEqual([6n, first + 1])
  })

  it("only the refused one of several ops fails; the ones behind it in its nonce key go later", async () => {
    await funded("first")
    await funded("second")
    const start = sent().length
    behave((turn) =>
      turn === start ? { does: "refuse", code: -32_500, message: "AA23 reverted" } : { does: "submit" }
    )
    const to = [nobody(), nobody(), nobody()]
    const caller = stack.caller()
    const operations = ["first", "first", "second"].map((salt, n) =>
      stack.transfer(salt, to[n] ?? "", String(n + 1))
    )
    const error = "the bundler refused the operation: AA23 reverted"
    expect(await stack.refused(stack.execute(operations, {}, caller))).toMatchObject({
      code: "outcome_unknown",
      details: [{ path: "operations[0]", message: error }]
    })
    expect(await Promise.all(to.map(stack.balanceOf))).toEqual([0n, 2n, 3n])
    const senders = sent()
      .slice(start)
      .map(({ op }) => op.sender)
    expect(senders).toEqual(["first", "second", "first"].map(stack.predict))
    const [failed, done] = [{ success: false, error }, { success: true }]
    expect(await ended(caller)).toMatchObject({
      state: "final",
      answer: { status: 4, returnData: [{ "0": failed }, { "1": done }, { "2": done }] }
    })
  })

  it("several ops of one wallet in one request go one after the other, with the bundler's preVerificationGas", async () => {
    await funded("row")
    bundler.demand(123_456n)
    const to = nobody()
    const operations = ["1", "2", "3"].map((amount) => stack.transfer("row", to, amount))
    const { status, txHashes } = await stack.ask(stack.execute(operations)).finally(() => bundler.demand(0n))
    expect([status, txHashes.length, await stack.balanceOf(to)]).toEqual([1, 3, 6n])
    expect(BigInt(sent().at(-1)?.op.preVerificationGas ?? 0)).toBe(123_456n)
  })

  it("an expired op goes again, as another op", async () => {
    await funded("over")
    const first = sent().length
    behave((turn) => (turn === first ? { does: "lose" } : { does: "submit" }))
    const to = nobody()
    const answer = executed("over", "7", to)
    await given(first + 1)
    await stack.later(601)
    expect(await answer).toMatchObject({ status: 1 })
    expect(await stack.balanceOf(to)).toBe(7n)
    const signatures = sent()
      .slice(first)
      .map(({ op }) => op.signature)
    expect([signatures.length, new Set(signatures).size]).toEqual([2, 2])
  })

  it("many concurrent requests are all done, each once", async () => {
    const salts = Array.from({ length: 5 }, (_, n) => `crowd ${n}`)
    for (const salt of salts) await funded(salt)
    const to = nobody()
    const results = await Promise.all([...salts, ...salts].map((salt) => executed(salt, "1", to)))
    expect(results.map(({ status }) => status)).toEqual(results.map(() => 1))
    expect(await stack.balanceOf(to)).toBe(10n)
  })

  it("an estimate names no submitter, and the op that is signed over its hash goes through, once", async () => {
    const wallet = await funded("encoded")
    const to = nobody()
    const { userOps } = await stack.estimate([stack.transfer("encoded", to, "8")])
    expect(userOps).toMatchObject([{ bundler: ZeroAddress, signingHash: userOps[0]?.userOpHash }])
    const post = () => stack.ask(stack.post(userOps, "userOpHash"))
    const { status, txHash } = await post()
    expect(status).toBe(1)
    expect((await post()).returnData).toMatchObject([{ "0": { success: true, txHash } }])
    expect([await stack.balanceOf(to), await stack.balanceOf(wallet)]).toEqual([8n, 92n])
  })
})
