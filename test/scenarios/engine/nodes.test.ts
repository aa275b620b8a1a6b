import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { AbiCoder } from "ethers"
import { afterEach, describe, expect, it } from "vitest"
import { type Answer, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { Address, errorsOf, useStack } from "../../support/stack/Stack.js"
import { use } from "../../support/Use.js"

const dead = "0x000000000000000000000000000000000000dEaD"
const gwei = 10n ** 9n

describe("a node that lies, refuses or hangs up", () => {
  const caps = { maxFeePerGas: 500n * gwei, maxPriorityFeePerGas: 100n * gwei, transactionGas: 600_000n }
  const stack = useStack({ profile: { receiptTimeoutMillis: 3_000, caps } }, async (stack) => {
    for (const wallet of await stack.create("lied-to")) await stack.mint(wallet, 1_000n)
  })
  const node = use(() => startFaultyNode(stack.anvil.url))
  afterEach(() => node.behave())

  const execute = (...amounts: ReadonlyArray<string>) =>
    stack.execute(
      amounts.map((amount) => stack.transfer("lied-to", dead, amount)),
      { rpc: node.url }
    )
  const works = async () => expect((await stack.ask(execute("0"))).status).toBe(1)
  /** This amount is received meanwhile. */
  const receiving = async (amount: bigint, work: () => Promise<unknown>) => {
    const before = await stack.balanceOf(dead)
    await work()
    await expect.poll(async () => (await stack.balanceOf(dead)) - before, { timeout: 20_000 }).toBe(amount)
  }

  /** Reply of `eth_simulateV1` when the EntryPoint blames one op. */
  const failedOp = (index: number, reason: string) => {
    const args = AbiCoder.defaultAbiCoder().encode(["uint256", "string"], [index, reason])
    return simulated(`0x220266b6${args.slice(2)}`)
  }
  const simulated = (returnData: string) => ({
    result: [{ calls: [{ status: "0x0", returnData, gasUsed: "0x0", logs: [] }] }]
  })
  /** From now on every call of this method gets this reply. */
  const always = (method: string, answer: Answer | null) =>
    node.behave((question, ask) => (question.method === method ? Promise.resolve(answer) : ask()))

  it.each([
    [
      "whose nonce of the EOA is no 64-bit integer",
      "eth_getTransactionCount",
      { result: `0x${"ff".repeat(32)}` }
    ],
    ["that always simulates on an old block", "eth_simulateV1", failedOp(0, "AA25 invalid account nonce")]
  ])("%s delays accepted work until the node behaves", async (_, method, answer) => {
    await receiving(2n, async () => {
      const before = await stack.balanceOf(dead)
      always(method, answer)
      expect(await stack.refused(execute("1", "1"))).toMatchObject({ code: "outcome_unknown" })
      expect(await stack.balanceOf(dead)).toBe(before)
      node.behave()
    })
    await works()
  })

  it.each([
    ["says already known", refusal(-32000, "already known")],
    ["says nonce too low", refusal(-32003, "nonce too low")],
    ["says underpriced", refusal(-32000, "replacement transaction underpriced")],
    ["hangs up", null]
  ])("takes a transaction and %s: it does not go twice", (_, said) =>
    receiving(1n, async () => {
      node.behave(async (question, ask) => {
        const answer = await ask()
        return question.method === "eth_sendRawTransaction" ? said : answer
      })
      expect((await stack.ask(execute("1"))).status).toBe(1)
    })
  )

  it.each([
    ["cannot be reached", 4, null],
    ["answers with errors, twice", 2, refusal(-32000, "busy")]
  ])("%s after acceptance: a direct transaction of the EOA continues", (_, times, said) =>
    receiving(7n, async () => {
      let failures = 0
      node.behave((question, ask) => {
        // Called once the request is accepted, never before.
        if (question.method !== "eth_getTransactionCount" || question.params[1] !== "pending") return ask()
        return failures++ < times ? Promise.resolve(said) : ask()
      })
      const to = Address.unsafe(String(stack.token.target))
      const minting = { to, funcSignature: "mint(address,uint256)", funcParams: [dead, "7"] }
      expect((await stack.ask(stack.transact(minting, { rpc: node.url }))).status).toBe(1)
      expect(failures).toBeGreaterThan(times)
    })
  )

  /** Leaves the data out of those logs of receipts and log queries. */
  const withoutData = (isSpoilt: (address: string) => boolean) =>
    node.behave(async (question, ask) => {
      const answer = await ask()
      const spoil = (log: { readonly address: string }) =>
        isSpoilt(log.address.toLowerCase()) ? { ...log, data: undefined } : log
      if (!("result" in answer) || answer.result === null) return answer
      if (question.method === "eth_getLogs") return { result: Object(answer.result).map(spoil) }
      if (question.method !== "eth_getTransactionReceipt") return answer
      const receipt = Object(answer.result)
      return { result: { ...receipt, logs: receipt.logs.map(spoil) } }
    })

  it("omits the data of a log: it is believed only for foreign logs", () =>
    receiving(3n, () =>
      stack.living(
        { profile: { rpc: Redacted.make(node.url), receiptTimeoutMillis: 2_000 } },
        async (life) => {
          const token = String(stack.token.target).toLowerCase()
          withoutData((address) => address === token)
          expect((await life.runPromise(execute("1"))).status).toBe(1)
          // An EntryPoint log without data shows neither success nor failure, and the op is not repeated.
          withoutData((address) => address !== token)
          expect((await life.runPromise(Effect.flip(execute("1")))).code).toBe("outcome_unknown")
          node.behave()
          expect((await life.runPromise(execute("1"))).status).toBe(1)
        }
      )
    ))

  it("goes away between two transactions of a request: the second is delayed", async () => {
    // One was refused; the others of its transaction were not.
    await receiving(9n, async () => {
      let [hasSent, isAway] = [false, false]
      node.behave(async (question, ask) => {
        if (isAway) return null
        isAway = hasSent && question.method === "eth_simulateV1"
        if (isAway) return failedOp(0, "AA21 didn't pay prefund")
        const answer = await ask()
        hasSent ||= question.method === "eth_sendRawTransaction"
        return answer
      })
      const before = await stack.balanceOf(dead)
      const unknown = await stack.refused(execute(...Array.from({ length: 9 }, () => "1")))
      expect(unknown).toMatchObject({ code: "outcome_unknown" })
      expect(await stack.balanceOf(dead)).toBeGreaterThan(before)
      node.behave()
    })
    await works()
  })

  it("simulates on an old block once: no op fails", async () => {
    let old = true
    node.behave((question, ask) => {
      if (question.method !== "eth_simulateV1" || !old) return ask()
      old = false
      return Promise.resolve(failedOp(0, "AA25 invalid account nonce"))
    })
    expect(await stack.ask(execute("0", "0"))).toMatchObject({ status: 1 })
  })

  it("cannot return one transaction's receipt: it returns those of others, and the operator's node that one", async () => {
    let first: unknown
    node.behave((question, ask) => {
      if (question.method !== "eth_getTransactionReceipt") return ask()
      first ??= question.params[0]
      return question.params[0] === first ? Promise.resolve({ result: { status: "0x1" } }) : ask()
    })
    const withheld = stack.ask(execute("0"))
    await expect.poll(() => first, { timeout: 10_000 }).toBeDefined()
    await works()
    expect(await withheld).toMatchObject({ status: 1, txHash: first })
  })

  it("does not name a bundle's failing op: the others do not fail", () =>
    receiving(3n, async () => {
      node.behave(async (question, ask) => {
        if (question.method !== "eth_simulateV1") return ask()
        // Unnamed: a bundle with the transfer of 77 in it reverts.
        const poison = "4d".padStart(64, "0").concat("0".repeat(56))
        return JSON.stringify(question.params).includes(poison) ? simulated("0x") : ask()
      })
      const result = await stack.ask(execute("1", "77", "1", "1"))
      expect(result.status).toBe(4)
      expect(errorsOf(result)).toEqual([null, expect.any(String), null, null])
    }))

  it("now serves another chain: it is refused", async () => {
    await works()
    node.behave(async ({ method, params }, ask) => {
      const answer = await ask()
      const [call] = params as ReadonlyArray<{ readonly to?: string }>
      if (method !== "eth_call" || call?.to !== stack.settings.entryPoint || !("result" in answer))
        return answer
      return { result: String(answer.result).replace(/^0x[0-9a-f]{64}/, `0x${"89".padStart(64, "0")}`) }
    })
    expect(await stack.refused(execute("0"))).toMatchObject({ code: "node_refused" })
  })

  it.each([
    ["answers with an error", 2, refusal(-32_000, "no")],
    ["says that it cannot answer now", 12, refusal(-32_603, "Internal error")]
  ])("%s between acceptance and signature, a few times only: it is queried again", (_, times, said) =>
    receiving(1n, async () => {
      let asked = 0
      node.behave((question, ask) => {
        if (question.method !== "eth_simulateV1" || asked >= times) return ask()
        asked += 1
        return Promise.resolve(said)
      })
      const before = await stack.nonce()
      expect((await stack.ask(execute("1"))).status).toBe(1)
      expect([asked, await stack.nonce()]).toEqual([times, before + 1])
    })
  )

  it.each([
    ["to hang up", null],
    ["to answer with errors", refusal(-32_000, "no")],
    ["to say -32603", refusal(-32_603, "Internal JSON-RPC error.")],
    ["to say 502", refusal(-32_000, "502 Bad Gateway")],
    ["not to find the block", refusal(-32_000, "header not found")]
  ])(
    "keeps %s then: 422 outcome_unknown with no transaction sent, and the op lands once when the node is back",
    async (_, said) => {
      await receiving(1n, async () => {
        always("eth_simulateV1", said)
        const before = await stack.nonce()
        expect(await stack.refused(execute("1"))).toMatchObject({
          _tag: "Unprocessable",
          code: "outcome_unknown"
        })
        expect(await stack.nonce()).toBe(before)
        node.behave()
      })
      await works()
    }
  )

  it("posting an op again while its transaction is on its way is outcome_unknown, not a refusal", async () => {
    const { userOps } = await stack.estimate([stack.transfer("lied-to", dead, "0")], { rpc: node.url })
    const post = () => stack.post(userOps, null, { rpc: node.url })
    await stack.automine(false)
    const both = await Promise.all([stack.refused(post()), stack.refused(post())])
    await stack.mine()
    await stack.automine(true)
    expect(both.map(({ code }) => code)).toEqual(["outcome_unknown", "outcome_unknown"])
    expect((await stack.ask(post())).status).toBe(1)
  })
})
