import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Contract } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Sponsorships from "../../../src/application/engine/Sponsorships.js"
import * as ExecuteOperations from "../../../src/application/operation/ExecuteOperations.js"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import * as CreateWallets from "../../../src/application/wallet/CreateWallets.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { Address, account, type Stack, startStack } from "../../support/stack/Stack.js"

describe("the operator's own paymaster", () => {
  let stack: Stack
  beforeAll(async () => {
    stack = await startStack()
  })
  afterAll(() => stack.stop())

  const figures = () =>
    stack.ask(
      Effect.gen(function* () {
        const budgets = yield* Budgets
        const pot = {
          accountId: account,
          chainId: BigInt(stack.anvil.chainId),
          name: Sponsorships.pot
        }
        return yield* Effect.orDie(budgets.figures(pot, yield* Clock.currentTimeMillis))
      })
    )
  const depositOf = (entryPoint: string): Promise<bigint> =>
    new Contract(entryPoint, ["function balanceOf(address) view returns (uint256)"], stack.provider)
      .getFunction("balanceOf")
      .staticCall(stack.suite.paymaster)

  it.each(Object.entries(entryPoints))(
    "creates and executes for wallets without a wei on EntryPoint %s, and its budget shows what the chain took",
    async (version, entryPoint) => {
      const before = { deposit: await depositOf(entryPoint), ...(await figures()) }
      const settings = {
        ...stack.settings,
        entryPoint: Address.unsafe(entryPoint),
        paymaster: Address.unsafe(stack.suite.paymaster)
      }
      const salt = `poor ${version}`
      const created = await stack.ask(
        CreateWallets.run(stack.caller(), { accounts: [{ salt, walletCustody: 1 }], settings })
      )
      expect(created.status).toBe(1)
      const wallet = stack.predict(salt)
      await stack.mint(wallet, 10n)
      const to = Address.unsafe(await stack.token.getAddress())
      const receiver = `0x${"c0".repeat(20)}`
      const executed = await stack.ask(
        ExecuteOperations.run(stack.caller(), {
          operations: [
            { salt, walletCustody: 1, to, funcSignature: "transfer(address,uint256)", funcParams: [receiver, "4"] }
          ],
          settings
        })
      )
      expect(executed.status).toBe(1)
      expect(await stack.balanceOf(wallet)).toBe(6n)
      expect(await stack.provider.getBalance(wallet)).toBe(0n)
      await expect.poll(figures, { timeout: 10_000 }).toMatchObject({ held: 0n })
      const taken = before.deposit - (await depositOf(entryPoint))
      expect(taken).toBeGreaterThan(0n)
      expect((await figures()).booked - before.booked).toBe(taken)
    }
  )
})
