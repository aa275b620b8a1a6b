import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { AbiCoder } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as TransactSigner from "../../../src/application/usecases/operations/TransactSigner.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { type FaultyNode, refusal, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

const dead = Address.unsafe("0x000000000000000000000000000000000000dead")

describe("a node that lies, refuses or hangs up", () => {
  let stack: Stack
  let node: FaultyNode
  let token: Address.Address
  beforeAll(async () => {
    stack = await startStack({
      profile: {
        receiptTimeoutMillis: 3_000,
        caps: {
          maxFeePerGas: 500_000_000_000n,
          maxPriorityFeePerGas: 100_000_000_000n,
          transactionGas: 600_000n
        }
      }
    })
    node = await startFaultyNode(stack.anvil.url)
    token = Address.unsafe(await stack.token.getAddress())
    for (const wallet of await stack.create("lied-to")) await stack.mint(wallet, 1_000n)
  })
  afterEach(() => node.behave())
  afterAll(async () => {
    await node.stop()
    await stack.stop()
  })

  const settings = () => ({ ...stack.settings, rpc: node.url })
  const transfer = (amount: string): Operation => ({
    salt: "lied-to",
    walletCustody: 1,
    to: token,
    funcSignature: "transfer(address,uint256)",
    funcParams: [dead, amount]
  })
  const execute = (...amounts: ReadonlyArray<string>) =>
    ExecuteOperations.run(stack.caller(), { operations: amounts.map(transfer), settings: settings() })

  /** What `eth_simulateV1` answers when the EntryPoint blames one op. */
  const failedOp = (index: number, reason: string) => ({
    result: [
      {
        calls: [
          {
            status: "0x0",
            returnData: `0x220266b6${AbiCoder.defaultAbiCoder().encode(["uint256", "string"], [index, reason]).slice(2)}`,
            gasUsed: "0x0",
            logs: []
          }
        ]
      }
    ]
  })

  /** A request that was accepted is only delayed by such a node; once it behaves, that many are there. */
  const delays = async (amounts: ReadonlyArray<string>, landed: bigint) => {
    const before = await stack.balanceOf(dead)
    expect(await stack.refused(execute(...amounts))).toMatchObject({ code: "outcome_unknown" })
    expect(await stack.balanceOf(dead)).toBe(before)
    node.behave()
    await expect.poll(async () => (await stack.balanceOf(dead)) - before, { timeout: 20_000 }).toBe(landed)
    expect((await stack.ask(execute("0"))).status).toBe(1)
  }

  it("whose nonce of the EOA is no 64-bit integer delays what was accepted", async () => {
    node.behave((question, ask) =>
      question.method === "eth_getTransactionCount"
        ? Promise.resolve({ result: `0x${"ff".repeat(32)}` })
        : ask()
    )
    await delays(["1"], 1n)
  })

  it.each([
    ["already known", -32000],
    ["nonce too low", -32003],
    ["replacement transaction underpriced", -32000]
  ])("that takes a transaction and says %s does not make it go twice", async (message, code) => {
    const before = await stack.balanceOf(dead)
    node.behave(async (question, ask) => {
      const answer = await ask()
      return question.method === "eth_sendRawTransaction" ? refusal(code, message) : answer
    })
    expect((await stack.ask(execute("1"))).status).toBe(1)
    expect((await stack.balanceOf(dead)) - before).toBe(1n)
  })

  it("that takes a transaction and hangs up does not make it go twice", async () => {
    const before = await stack.balanceOf(dead)
    node.behave(async (question, ask) => {
      const answer = await ask()
      return question.method === "eth_sendRawTransaction" ? null : answer
    })
    expect((await stack.ask(execute("1"))).status).toBe(1)
    expect((await stack.balanceOf(dead)) - before).toBe(1n)
  })

  it.each([
    ["cannot be reached", 4, () => Promise.resolve(null)],
    ["answers with errors, twice", 2, () => Promise.resolve(refusal(-32000, "busy"))]
  ])("that %s after acceptance does not end a transaction of the EOA itself", async (_, times, fault) => {
    const before = await stack.balanceOf(dead)
    let failures = 0
    node.behave((question, ask) => {
      // Asked once the request is accepted, never before.
      if (question.method !== "eth_getTransactionCount" || question.params?.[1] !== "pending") return ask()
      return failures++ < times ? fault() : ask()
    })
    const answer = await stack.ask(
      TransactSigner.run(stack.caller(), {
        to: token,
        funcSignature: "mint(address,uint256)",
        funcParams: [dead, "7"],
        settings: settings()
      })
    )
    expect([answer.status, failures > times]).toEqual([1, true])
    expect((await stack.balanceOf(dead)) - before).toBe(7n)
  })

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

  it("that leaves the data out of a log is believed as far as that log is somebody else's", async () => {
    const own = { rpc: Redacted.make(node.url), receiptTimeoutMillis: 2_000 }
    const life = stack.begin({ profile: own })
    try {
      const before = await stack.balanceOf(dead)
      withoutData((address) => address === token.toLowerCase())
      expect((await life.runPromise(execute("1"))).status).toBe(1)
      // Of the EntryPoint's it tells neither success nor failure, and the op is not done again.
      withoutData((address) => address !== token.toLowerCase())
      const { code } = await life.runPromise(Effect.flip(execute("1")))
      expect(code).toBe("outcome_unknown")
      node.behave()
      expect((await life.runPromise(execute("1"))).status).toBe(1)
      expect((await stack.balanceOf(dead)) - before).toBe(3n)
    } finally {
      await life.dispose()
    }
  })

  it("that goes away between two transactions of a request delays the second", async () => {
    let simulations = 0
    node.behave(async (question, ask) => {
      if (question.method === "eth_simulateV1") {
        simulations += 1
        if (simulations === 2) return failedOp(0, "AA21 didn't pay prefund")
      }
      return simulations >= 2 && question.method === "eth_feeHistory" ? null : ask()
    })
    const before = await stack.balanceOf(dead)
    const unknown = await stack.refused(execute(...Array.from({ length: 9 }, () => "1")))
    expect(unknown).toMatchObject({ code: "outcome_unknown" })
    const first = (await stack.balanceOf(dead)) - before
    expect(first).toBeGreaterThan(0n)
    node.behave()
    // One was refused, the others of its transaction were not.
    await expect.poll(async () => (await stack.balanceOf(dead)) - before, { timeout: 20_000 }).toBe(8n)
    expect((await stack.ask(execute("0"))).status).toBe(1)
  })

  it("that simulates on an old block makes no op fail", async () => {
    let old = true
    node.behave((question, ask) => {
      if (question.method !== "eth_simulateV1" || !old) return ask()
      old = false
      return Promise.resolve(failedOp(0, "AA25 invalid account nonce"))
    })
    expect(await stack.ask(execute("0", "0"))).toMatchObject({ status: 1 })
  })

  it("that always simulates on an old block delays what was accepted", async () => {
    node.behave((question, ask) =>
      question.method === "eth_simulateV1"
        ? Promise.resolve(failedOp(0, "AA25 invalid account nonce"))
        : ask()
    )
    await delays(["1", "1"], 2n)
  })

  it("that cannot give one transaction's receipt still gives those of others, and the operator's node gives that one", async () => {
    let first: unknown
    node.behave((question, ask) => {
      if (question.method !== "eth_getTransactionReceipt") return ask()
      first ??= question.params[0]
      return question.params[0] === first ? Promise.resolve({ result: { status: "0x1" } }) : ask()
    })
    const withheld = stack.ask(execute("0"))
    await expect.poll(() => first, { timeout: 10_000 }).toBeDefined()
    expect((await stack.ask(execute("0"))).status).toBe(1)
    expect(await withheld).toMatchObject({ status: 1, txHash: first })
  })

  it("that does not say which op of a bundle fails does not make the others fail", async () => {
    const before = await stack.balanceOf(dead)
    const reverted = failedOp(0, "")
    node.behave(async (question, ask) => {
      if (question.method !== "eth_simulateV1") return ask()
      // Unnamed: what reverts is a bundle with the transfer of 77 in it.
      const fails = JSON.stringify(question.params).includes("4d".padStart(64, "0").concat("0".repeat(56)))
      return fails ? { result: [{ calls: [{ ...reverted.result[0]?.calls[0], returnData: "0x" }] }] } : ask()
    })
    const { returnData, status } = await stack.ask(execute("1", "77", "1", "1"))
    expect(status).toBe(4)
    expect(returnData.map((each, index) => each[index]?.success)).toEqual([true, false, true, true])
    expect((await stack.balanceOf(dead)) - before).toBe(3n)
  })

  it("that serves another chain by now is refused", async () => {
    const [op] = (
      await stack.ask(EstimateGas.run(stack.caller(), { operations: [transfer("0")], settings: settings() }))
    ).userOps
    expect(op).toBeDefined()
    node.behave(async (question, ask) => {
      const answer = await ask()
      const { method, params } = question
      const [call] = params as ReadonlyArray<{ readonly to?: string }>
      if (method !== "eth_call" || call?.to !== stack.settings.entryPoint || !("result" in answer))
        return answer
      return { result: String(answer.result).replace(/^0x[0-9a-f]{64}/, `0x${"89".padStart(64, "0")}`) }
    })
    expect(await stack.refused(execute("0"))).toMatchObject({ code: "node_refused" })
  })

  it("posting an op again while its transaction is on its way is outcome_unknown, not a refusal", async () => {
    const [op] = (
      await stack.ask(EstimateGas.run(stack.caller(), { operations: [transfer("0")], settings: settings() }))
    ).userOps
    if (op === undefined) throw new Error("an op was expected")
    const post = () =>
      ExecuteEncoded.run(stack.caller(), {
        operations: [
          {
            encodedUserOp: Hex.unsafe(op.encodedUserOp),
            userOpHash: Hex.unsafe32(op.userOpHash),
            walletCustody: 1
          }
        ],
        settings: settings()
      })
    await stack.provider.send("evm_setAutomine", [false])
    const both = await Promise.all([stack.refused(post()), stack.refused(post())])
    await stack.provider.send("evm_mine", [])
    await stack.provider.send("evm_setAutomine", [true])
    expect(both.map(({ code }) => code)).toEqual(["outcome_unknown", "outcome_unknown"])
    expect((await stack.ask(post())).status).toBe(1)
  })
})
