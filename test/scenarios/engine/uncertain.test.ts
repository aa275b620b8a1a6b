import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { solidityPackedKeccak256 } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import { SignerError } from "../../../src/application/ports/Signers.js"
import { Lifetime } from "../../../src/application/runtime/Lifetime.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

const ether = 10n ** 18n
const dead = Address.unsafe("0x000000000000000000000000000000000000dead")

const operations = async (stack: Stack, salt: string, amount: string): Promise<ReadonlyArray<Operation>> => [
  {
    salt,
    walletCustody: 1,
    to: Address.unsafe(await stack.token.getAddress()),
    funcSignature: "transfer(address,uint256)",
    funcParams: [dead, amount]
  }
]

const execute = async (stack: Stack, salt: string, amount: string) =>
  ExecuteOperations.run(stack.caller(), {
    operations: await operations(stack, salt, amount),
    settings: stack.settings
  })

describe("a transaction that is not mined in time", () => {
  let stack: Stack
  beforeAll(async () => {
    stack = await startStack({ profile: { receiptTimeoutMillis: 600 } })
    const [wallet] = await stack.create("slow")
    await stack.mint(String(wallet), 100n)
  })
  afterAll(() => stack.stop())

  const pending = async () => (await stack.provider.send("txpool_status", [])).pending

  it("is 422 outcome_unknown with its hash, goes on being watched, and is not sent again", async () => {
    const [op] = (
      await stack.ask(
        EstimateGas.run(stack.caller(), {
          operations: await operations(stack, "slow", "1"),
          settings: stack.settings
        })
      )
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
        settings: stack.settings
      })
    await stack.provider.send("evm_setAutomine", [false])
    const failure = await stack.refused(post())
    expect(failure).toMatchObject({
      _tag: "Unprocessable",
      code: "outcome_unknown",
      message: "transaction not confirmed in time"
    })
    const { extra } = failure as Extract<typeof failure, { _tag: "Unprocessable" }>
    expect(extra.txHash).toMatch(/^0x[0-9a-f]{64}$/)
    const again = await stack.refused(post())
    expect(again).toMatchObject({ code: "outcome_unknown", extra: { txHash: extra.txHash } })
    expect(await pending()).toBe("0x1")
    await stack.provider.send("evm_mine", [])
    await stack.provider.send("evm_setAutomine", [true])
    const result = await stack.ask(post())
    expect(result).toMatchObject({ status: 1, txHash: extra.txHash })
    expect(await stack.balanceOf(dead)).toBe(1n)
  })

  it("is told what is known of it when the process stops waiting", async () => {
    const patient = await startStack({ profile: { receiptTimeoutMillis: 60_000 } })
    try {
      await patient.create("stopped")
      await patient.provider.send("evm_setAutomine", [false])
      const refusal = patient.refused(await execute(patient, "stopped", "0"))
      const known = async () => (await patient.provider.send("txpool_status", [])).pending
      await expect.poll(known).toBe("0x1")
      await patient.runtime.runPromise(Effect.flatMap(Lifetime, ({ stopWaiting }) => stopWaiting))
      expect(await refusal).toMatchObject({
        code: "outcome_unknown",
        extra: { txHash: expect.stringMatching(/^0x[0-9a-f]{64}$/) }
      })
    } finally {
      await patient.stop()
    }
  })

  it("lands once when its caller has gone away", async () => {
    await stack.provider.send("evm_setAutomine", [false])
    const before = await stack.balanceOf(dead)
    const fiber = stack.runtime.runFork(await execute(stack, "slow", "2"))
    await expect.poll(pending).toBe("0x1")
    await stack.runtime.runPromise(Fiber.interrupt(fiber))
    await stack.provider.send("evm_mine", [])
    await stack.provider.send("evm_setAutomine", [true])
    expect((await stack.ask(await execute(stack, "slow", "3"))).status).toBe(1)
    expect((await stack.balanceOf(dead)) - before).toBe(5n)
  })
})

describe("a signer that refuses", () => {
  let stack: Stack
  let refuseFrom = Number.POSITIVE_INFINITY
  let signed = 0
  beforeAll(async () => {
    stack = await startStack({
      wrapSigner: (signer) => ({
        ...signer,
        sign: (digest) =>
          Effect.suspend(() => {
            signed += 1
            return signed >= refuseFrom
              ? Effect.fail(new SignerError({ reason: "refused", message: "policy" }))
              : signer.sign(digest)
          })
      })
    })
    const [wallet] = await stack.create("refused")
    await stack.mint(String(wallet), 100n)
  })
  afterAll(() => stack.stop())

  it.each([
    ["the op", 1],
    ["the transaction", 2]
  ])(
    "%s is 422, sends nothing, and leaves neither a taken nonce key nor a gap in the lane",
    async (_, at) => {
      const before = await stack.balanceOf(dead)
      for (let n = 0; n < 17; n += 1) {
        signed = 0
        refuseFrom = at
        const failure = await stack.refused(await execute(stack, "refused", "1"))
        expect(failure).toMatchObject({ _tag: "Unprocessable", code: "signer_unavailable" })
      }
      refuseFrom = Number.POSITIVE_INFINITY
      const nonce = await stack.provider.getTransactionCount(stack.signer.address)
      const result = await stack.ask(await execute(stack, "refused", "1"))
      expect(result.status).toBe(1)
      expect((await stack.provider.getTransaction(result.txHash))?.nonce).toBe(nonce)
      expect((await stack.balanceOf(dead)) - before).toBe(1n)
    }
  )
})

describe("a key provider that does not answer once a request is accepted", () => {
  it("delays it, whoever waits for it: nothing fails, and it is done once", async () => {
    let isSilent = false
    const stack = await startStack({
      profile: { receiptTimeoutMillis: 1_000 },
      wrapSigner: (signer) => ({
        ...signer,
        sign: (digest) =>
          Effect.suspend(() =>
            isSilent
              ? Effect.fail(new SignerError({ reason: "unavailable", message: "no answer" }))
              : signer.sign(digest)
          )
      })
    })
    try {
      const [wallet] = await stack.create("silent")
      await stack.mint(String(wallet), 100n)
      const before = await stack.balanceOf(dead)
      isSilent = true
      const failure = await stack.refused(await execute(stack, "silent", "3"))
      expect(failure).toMatchObject({ code: "outcome_unknown", details: [] })
      // Longer than its caller has waited.
      const late = await stack.refused(await execute(stack, "silent", "4"))
      expect(late).toMatchObject({ code: "outcome_unknown", details: [] })
      expect((await stack.balanceOf(dead)) - before).toBe(0n)
      isSilent = false
      await expect.poll(async () => (await stack.balanceOf(dead)) - before, { timeout: 20_000 }).toBe(7n)
    } finally {
      await stack.stop()
    }
  })
})

describe("a bundle that reverts on the chain", () => {
  it("is status 0 with the reason that the next look finds, and its ops leave neither a taken nonce nor reserved money behind", async () => {
    const stack = await startStack()
    try {
      const [wallet] = await stack.create("emptied")
      await stack.mint(String(wallet), 10n)
      const slot = solidityPackedKeccak256(["uint256", "uint256"], [wallet, 0])
      await stack.provider.send("evm_setAutomine", [false])
      const sending = stack.ask(await execute(stack, "emptied", "1"))
      await expect.poll(async () => (await stack.provider.send("txpool_status", [])).pending).toBe("0x1")
      await stack.fund(String(wallet), 0n)
      await stack.provider.send("anvil_setStorageAt", [
        stack.settings.entryPoint,
        slot,
        `0x${"00".repeat(32)}`
      ])
      await stack.provider.send("evm_mine", [])
      await stack.provider.send("evm_setAutomine", [true])
      const result = await sending
      expect(result.status).toBe(0)
      expect(result.returnData[0]?.["0"]).toMatchObject({ success: false, result: null })
      expect(result.returnData[0]?.["0"]?.error).toMatch(/insufficient funds/)
      await stack.fund(String(wallet), ether)
      for (let n = 0; n < 3; n += 1)
        expect((await stack.ask(await execute(stack, "emptied", "1"))).status).toBe(1)
      expect(await stack.balanceOf(dead)).toBe(3n)
    } finally {
      await stack.stop()
    }
  })
})

describe("what the operator bounds", () => {
  it("a price above his cap is 422, and nothing is sent", async () => {
    const stack = await startStack()
    try {
      await stack.create("capped")
      await stack.provider.send("anvil_setNextBlockBaseFeePerGas", ["0x174876e80000"])
      await stack.provider.send("evm_mine", [])
      const failure = await stack.refused(await execute(stack, "capped", "0"))
      expect(failure).toMatchObject({ _tag: "Unprocessable", code: "fees_above_cap" })
    } finally {
      await stack.stop()
    }
  })

  it("an implementation other than the pinned one stops writes", async () => {
    const stack = await startStack({
      profile: { implementationCodeHash: Hex.unsafe32(`0x${"11".repeat(32)}`) }
    })
    try {
      const failure = await stack.refused(await execute(stack, "pinned", "0"))
      expect(failure).toMatchObject({ _tag: "Unprocessable", message: "wallet implementation changed" })
    } finally {
      await stack.stop()
    }
  })
})

describe("money", () => {
  let stack: Stack
  beforeAll(async () => {
    stack = await startStack()
  })
  afterAll(() => stack.stop())

  it("two requests that together exceed a wallet's balance never both reach the chain", async () => {
    await stack.create("thin")
    const send = (to: Address.Address) =>
      ExecuteOperations.run(stack.caller(), {
        operations: [
          { salt: "thin", walletCustody: 1, to, funcSignature: "receive()", value: (ether * 7n) / 10n }
        ],
        settings: stack.settings
      })
    const before = await stack.provider.getTransactionCount(stack.signer.address)
    const results = await Promise.allSettled([
      stack.ask(send(Address.unsafe(`0x${"a1".repeat(20)}`))),
      stack.ask(send(Address.unsafe(`0x${"b2".repeat(20)}`)))
    ])
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
    expect(await stack.provider.getTransactionCount(stack.signer.address)).toBe(before + 1)
  })
})

describe("what is asked of the node", () => {
  const head = "eth_getBlockByNumber"
  const receipt = "eth_getTransactionReceipt"
  const sent = "eth_sendRawTransaction"
  /** Once in two and in ten seconds, whoever asks. */
  const now = (methods: ReadonlyArray<string>) =>
    methods.filter((method) => method !== "eth_maxPriorityFeePerGas" && method !== head).sort()

  it("for one op of a known wallet is nine calls in four round trips, and one more for each further wallet", async () => {
    const exchanges: Array<ReadonlyArray<string>> = []
    const stack = await startStack({ onExchange: (methods) => exchanges.push(methods) })
    try {
      const salts = Array.from({ length: 10 }, (_, n) => `counted ${n}`)
      for (const wallet of await stack.create(...salts)) await stack.mint(wallet, 10n)
      const asked = async (some: ReadonlyArray<string>) => {
        exchanges.length = 0
        const all = await Promise.all(some.map((salt) => operations(stack, salt, "1")))
        await stack.ask(
          ExecuteOperations.run(stack.caller(), { operations: all.flat(), settings: stack.settings })
        )
        const end = exchanges.findIndex((methods) => methods.includes(sent)) + 1
        const looks = exchanges.slice(end)
        expect(looks.length).toBeGreaterThan(0)
        // The head, which says whether a receipt's block is sealed, is asked for with the receipt.
        for (const look of looks) expect([...look].sort()).toEqual([head, receipt])
        return exchanges.slice(0, end).map(now)
      }
      await asked(salts)
      const calls = (count: number) => Array.from({ length: count }, () => "eth_call")
      const rest = [["eth_getBalance", "eth_getTransactionCount", "eth_simulateV1"], [sent]]
      // The measurement, and the configuration of each wallet.
      expect(await asked(salts.slice(0, 1))).toEqual([[...calls(2), "eth_feeHistory"], ...rest])
      expect(await asked(salts)).toEqual([[...calls(11), "eth_feeHistory"], ...rest])
    } finally {
      await stack.stop()
    }
  })
})
