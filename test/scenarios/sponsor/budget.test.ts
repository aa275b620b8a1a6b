import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Interface } from "ethers"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import * as CreateWallets from "../../../src/application/endpoints/wallets/CreateWallets.js"
import * as Start from "../../../src/application/operate/Start.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { type Sponsored, sponsored } from "../../support/stack/Sponsored.js"
import { type Runtime, type Stack, startStack } from "../../support/stack/Stack.js"

describe("the sponsorship budget", () => {
  let stack: Stack
  let sponsor: Sponsored
  let lives: Array<Runtime> = []
  let folder: string
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), "castellan-sponsor-"))
    stack = await startStack({ database: join(folder, "castellan.db") })
    sponsor = await sponsored(stack)
    await stack.ask(
      CreateWallets.run(stack.caller(), {
        accounts: [{ salt: "main", walletCustody: 1 }],
        settings: sponsor.settings
      })
    )
    await sponsor.settled()
  })
  afterEach(async () => {
    await stack.provider.send("evm_setAutomine", [true])
    await stack.provider.send("evm_mine", [])
    await Promise.all(lives.map((life) => life.dispose()))
    lives = []
  })
  afterAll(async () => {
    await stack.stop()
    rmSync(folder, { recursive: true, force: true })
  })

  const begin = (dailyBudget: bigint, ownsLanes = true): Runtime => {
    const { paymaster } = sponsor.settings
    const life = stack.begin({ profile: { sponsor: { paymaster, dailyBudget } }, ownsLanes })
    lives.push(life)
    return life
  }
  const execute = (life: Runtime, amount = 1n) =>
    life.runPromise(
      Effect.result(
        ExecuteOperations.run(stack.caller(), {
          operations: [sponsor.mint("main", amount)],
          settings: sponsor.settings
        })
      )
    )
  /** Largest possible cost of one operation. */
  const most = async (): Promise<bigint> => {
    const { userOps } = await stack.ask(
      EstimateGas.run(stack.caller(), {
        operations: [sponsor.mint("main", 1n)],
        settings: sponsor.settings
      })
    )
    const op = UserOperation.decode("v0.7", Hex.unsafe(userOps[0]?.encodedUserOp ?? "0x"))
    return Gas.requiredPrefund("v0.7", Result.getOrThrow(op))
  }

  it("once spent pays for no further op, and none is sent", async () => {
    const { booked } = await sponsor.settled()
    const nonce = await stack.provider.getTransactionCount(stack.signer.address)
    const refused = await execute(begin(booked))
    expect(refused).toMatchObject({
      failure: { code: "sponsorship_exhausted", details: [{ path: "operations[0]", available: "0" }] }
    })
    expect(await stack.provider.getTransactionCount(stack.signer.address)).toBe(nonce)
    expect(await sponsor.figures()).toEqual({ held: 0n, booked })
  })

  it("is not exceeded by two concurrent processes, and shows the chain's charges", async () => {
    const before = { ...(await sponsor.settled()), minted: await sponsor.minted() }
    const deposit = await sponsor.deposit()
    const one = await most()
    const budget = before.booked + one * 3n + one / 2n
    const [first, second] = [begin(budget), begin(budget, false)]
    await first.runPromise(Start.start)
    await stack.provider.send("evm_setAutomine", [false])
    const asked = Array.from({ length: 10 }, (_, index) => execute(index % 2 === 0 ? first : second))
    let answered = 0
    for (const each of asked) void each.then(() => answered++)
    await expect.poll(() => answered, { timeout: 20_000 }).toBe(7)
    const { booked, held } = await sponsor.figures()
    expect(booked + held).toBeLessThanOrEqual(budget)
    expect(booked + held).toBeGreaterThan(budget - one)
    await stack.provider.send("evm_setAutomine", [true])
    await stack.provider.send("evm_mine", [])
    const answers = await Promise.all(asked)
    expect(answers.filter(Result.isSuccess)).toHaveLength(3)
    for (const refused of answers.filter(Result.isFailure))
      expect(refused.failure).toMatchObject({ code: "sponsorship_exhausted" })
    expect((await sponsor.minted()) - before.minted).toBe(3n)
    const after = await sponsor.settled()
    expect(after.booked - before.booked).toBe(deposit - (await sponsor.deposit()))
  })

  it("keeps an operation's possible cost when the process dies, and books it when it was mined in the meantime", async () => {
    const before = await sponsor.settled()
    const deposit = await sponsor.deposit()
    await stack.provider.send("evm_setAutomine", [false])
    const dying = stack.begin()
    void dying
      .runPromise(
        Effect.result(
          ExecuteOperations.run(stack.caller(), {
            operations: [sponsor.mint("main", 1n)],
            settings: sponsor.settings
          })
        )
      )
      .catch(() => undefined)
    await expect
      .poll(async () => (await stack.provider.send("txpool_status", [])).pending, { timeout: 15_000 })
      .toBe("0x1")
    await dying.dispose()
    expect((await sponsor.figures()).held).toBeGreaterThan(0n)
    await stack.provider.send("evm_setAutomine", [true])
    await stack.provider.send("evm_mine", [])
    const next = stack.begin()
    lives.push(next)
    await next.runPromise(Start.start)
    const { booked } = await sponsor.settled()
    expect(booked).toBeGreaterThan(before.booked)
    expect(booked - before.booked).toBe(deposit - (await sponsor.deposit()))
  })

  it("releases the possible cost of an operation not mined within its ten minutes", async () => {
    const before = await sponsor.settled()
    const deposit = await sponsor.deposit()
    await stack.provider.send("evm_setAutomine", [false])
    const dying = stack.begin()
    const caller = stack.caller()
    void dying
      .runPromise(
        Effect.result(
          ExecuteOperations.run(caller, {
            operations: [sponsor.mint("main", 1n)],
            settings: sponsor.settings
          })
        )
      )
      .catch(() => undefined)
    await expect
      .poll(async () => (await stack.provider.send("txpool_status", [])).pending, { timeout: 15_000 })
      .toBe("0x1")
    await dying.dispose()
    await stack.provider.send("anvil_dropAllTransactions", [])
    await stack.provider.send("evm_increaseTime", [700])
    await stack.provider.send("evm_mine", [])
    const next = stack.begin()
    lives.push(next)
    await next.runPromise(Start.start)
    expect(await sponsor.settled()).toEqual(before)
    expect(await sponsor.deposit()).toBe(deposit)
    const state = await next.runPromise(
      Effect.flatMap(RequestJournal, (requestJournal) => requestJournal.request(caller.requestId))
    )
    expect(state?.ops).toHaveLength(1)
  })

  it("pays for nothing out of an empty deposit: the answer names the paymaster", async () => {
    const { entryPoint, paymaster } = sponsor.settings
    const { provider } = stack
    await provider.send("anvil_impersonateAccount", [paymaster])
    await provider.send("anvil_setBalance", [paymaster, "0xde0b6b3a7640000"])
    const withdraw = new Interface(["function withdrawTo(address,uint256)"]).encodeFunctionData(
      "withdrawTo",
      [stack.signer.address, await sponsor.deposit()]
    )
    const hash = await provider.send("eth_sendTransaction", [
      { from: paymaster, to: entryPoint, data: withdraw }
    ])
    await provider.waitForTransaction(hash)
    const { booked } = await sponsor.figures()
    const refused = await stack.refused(
      ExecuteOperations.run(stack.caller(), {
        operations: [sponsor.mint("main", 1n)],
        settings: sponsor.settings
      })
    )
    expect(refused).toMatchObject({ code: "insufficient_funds", details: [{ paymaster }] })
    expect(await sponsor.figures()).toEqual({ held: 0n, booked })
  })
})
