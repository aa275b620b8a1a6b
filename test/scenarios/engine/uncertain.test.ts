import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import { solidityPackedKeccak256 } from "ethers"
import { describe, expect, it } from "vitest"
import { SignerError } from "../../../src/application/ports/Signers.js"
import { Lifetime } from "../../../src/application/runtime/Lifetime.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { useStack } from "../../support/stack/Stack.js"
import * as Time from "../../support/Time.js"

const dead = "0x000000000000000000000000000000000000dEaD"
/** Results of the signer's next signatures. */
let signing: (turn: number) => SignerError | null = () => null
let turn = 0
const exchanges: Array<ReadonlyArray<string>> = []
const sent = "eth_sendRawTransaction"
/** Ends a hold of the time. */
let release = (): void => {}

const stack = useStack(
  {
    onExchange: (methods) => {
      exchanges.push(methods)
      if (methods.includes(sent)) release()
    },
    wrapSigner: (signer) => ({
      ...signer,
      sign: (digest) =>
        Effect.suspend(() => {
          turn += 1
          const error = signing(turn)
          return error === null ? signer.sign(digest) : Effect.fail(error)
        })
    })
  },
  async (stack) => {
    const [wallet = ""] = await stack.create("wallet")
    await stack.mint(wallet, 1_000n)
  }
)
const execute = (amount: string) => stack.execute([stack.transfer("wallet", dead, amount)])
/** This amount is received by the end of the work. */
const receiving = async <A>(amount: bigint, work: () => Promise<A>): Promise<A> => {
  const before = await stack.balanceOf(dead)
  const result = await work()
  await expect.poll(async () => (await stack.balanceOf(dead)) - before, { timeout: 20_000 }).toBe(amount)
  return result
}

describe("a transaction that is not mined in time", () => {
  it("is 422 outcome_unknown with its hash, stays watched, and is not sent again", () =>
    receiving(1n, () =>
      stack.living({ profile: { receiptTimeoutMillis: 600 } }, async (life) => {
        const { userOps } = await stack.estimate([stack.transfer("wallet", dead)])
        await stack.automine(false)
        const refused = () => life.runPromise(Effect.flip(stack.post(userOps)))
        const [failure] = [await refused(), await stack.pooled(1)]
        const txHash = (await stack.pool())[0]?.hash
        const unknown = { _tag: "Unprocessable", code: "outcome_unknown", extra: { txHash } }
        expect(failure).toMatchObject({ ...unknown, message: "transaction not confirmed in time" })
        expect(await refused()).toMatchObject(unknown)
        expect(await stack.pool()).toHaveLength(1)
        await stack.mine()
        await stack.automine(true)
        expect(await life.runPromise(stack.post(userOps))).toMatchObject({ status: 1, txHash })
      })
    ))

  it("gets the known state when the process stops waiting", () =>
    stack.living({ profile: { receiptTimeoutMillis: 60_000 } }, async (life) => {
      await stack.automine(false)
      const refusal = life.runPromise(Effect.flip(execute("0")))
      const [pending] = await stack.pooled(1)
      await life.runPromise(Effect.flatMap(Lifetime, ({ stopWaiting }) => stopWaiting))
      const extra = { txHash: pending?.hash }
      expect(await refusal).toMatchObject({ code: "outcome_unknown", extra })
      await stack.mine()
    }))

  it("lands once when its caller has gone away", () =>
    receiving(5n, async () => {
      await stack.automine(false)
      const fiber = stack.runtime.runFork(execute("2"))
      await stack.pooled(1)
      await stack.ask(Fiber.interrupt(fiber))
      await stack.mine()
      await stack.automine(true)
      expect((await stack.ask(execute("3"))).status).toBe(1)
    }))
})

it.each([
  ["the op", 1],
  ["the transaction", 2]
])(
  "a signer that refuses %s is 422, sends no transaction, and leaves neither a taken nonce key nor a gap in the lane",
  (_, at) =>
    receiving(1n, async () => {
      signing = (turn) => (turn >= at ? new SignerError({ reason: "refused", message: "policy" }) : null)
      for (let n = 0; n < 17; n += 1) {
        turn = 0
        const failure = await stack.refused(execute("1"))
        expect(failure).toMatchObject({ _tag: "Unprocessable", code: "signer_unavailable" })
      }
      signing = () => null
      const nonce = await stack.nonce()
      const { status, txHash } = await stack.ask(execute("1"))
      expect([status, (await stack.provider.getTransaction(txHash))?.nonce]).toEqual([1, nonce])
    })
)

it("a key provider silent after acceptance only delays a request: it does not fail, and is done once", () =>
  stack.living({ profile: { receiptTimeoutMillis: 1_000 } }, (life) =>
    receiving(17n, async () => {
      const before = await stack.balanceOf(dead)
      signing = () => new SignerError({ reason: "unavailable", message: "no answer" })
      // The second comes when the first one's caller has waited long enough.
      for (const amount of ["8", "9"]) {
        const failure = await life.runPromise(Effect.flip(execute(amount)))
        expect(failure).toMatchObject({
          code: "outcome_unknown",
          details: [{ path: "", message: "delayed: no answer" }]
        })
      }
      expect(await stack.balanceOf(dead)).toBe(before)
      signing = () => null
      await expect.poll(async () => (await stack.balanceOf(dead)) - before, { timeout: 20_000 }).toBe(17n)
    })
  ))

it("a bundle that reverts on the chain is status 0 with the reason that the next poll finds, and its ops leave neither a taken nonce nor reserved money", async () => {
  const [wallet = ""] = await stack.create("emptied")
  await stack.mint(wallet, 10n)
  const again = () => stack.ask(stack.execute([stack.transfer("emptied", dead)]))
  await receiving(4n, async () => {
    expect((await again()).status).toBe(1)
    await stack.automine(false)
    const sending = again()
    await stack.pooled(1)
    await stack.fund(wallet, 0n)
    const slot = solidityPackedKeccak256(["uint256", "uint256"], [wallet, 0])
    const nothing = `0x${"00".repeat(32)}`
    await stack.provider.send("anvil_setStorageAt", [stack.settings.entryPoint, slot, nothing])
    await stack.mine()
    await stack.automine(true)
    const error = expect.stringMatching(/^AA21 /)
    expect(await sending).toMatchObject({
      status: 0,
      returnData: [{ "0": { success: false, result: null, error } }]
    })
    await stack.fund(wallet, 10n ** 18n)
    for (let n = 0; n < 3; n += 1) expect((await again()).status).toBe(1)
  })
})

it("an implementation other than the pinned one stops writes", () => {
  const implementationCodeHash = Hex.unsafe32(`0x${"11".repeat(32)}`)
  return stack.living({ profile: { implementationCodeHash } }, async (life) => {
    const failure = await life.runPromise(Effect.flip(execute("0")))
    expect(failure).toMatchObject({ _tag: "Unprocessable", message: "wallet implementation changed" })
  })
})

it("one op of a known wallet costs nine node calls in four round trips, and one call more for each further wallet", async () => {
  const head = "eth_getBlockByNumber"
  const receipt = "eth_getTransactionReceipt"
  /** Once in two and in ten seconds, whatever the callers. */
  const byTheClock = ["eth_maxPriorityFeePerGas", head]
  const salts = Array.from({ length: 10 }, (_, n) => `counted ${n}`)
  for (const wallet of await stack.create(...salts)) await stack.mint(wallet, 10n)
  const asked = async (some: ReadonlyArray<string>) => {
    exchanges.length = 0
    release = Time.hold()
    await stack.ask(stack.execute(some.map((salt) => stack.transfer(salt, dead)))).finally(release)
    const end = exchanges.findIndex((methods) => methods.includes(sent)) + 1
    const looks = exchanges.slice(end)
    expect(looks.length).toBeGreaterThan(0)
    // The head, which says whether a receipt's block is sealed, is read together with the receipt.
    for (const look of looks) expect([...look].sort()).toEqual([head, receipt])
    return exchanges
      .slice(0, end)
      .map((methods) => methods.filter((method) => !byTheClock.includes(method)).sort())
  }
  await asked(salts)
  const calls = (count: number) => Array.from({ length: count }, () => "eth_call")
  const rest = [["eth_getBalance", "eth_getTransactionCount", "eth_simulateV1"], [sent]]
  // The measurement, and the configuration of each wallet.
  expect(await asked(salts.slice(0, 1))).toEqual([[...calls(2), "eth_feeHistory"], ...rest])
  expect(await asked(salts)).toEqual([[...calls(11), "eth_feeHistory"], ...rest])
})
