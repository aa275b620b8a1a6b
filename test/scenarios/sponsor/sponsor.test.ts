import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { type Sponsored, sponsored } from "../../support/stack/Sponsored.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

describe("the operator's own paymaster", () => {
  let stack: Stack
  let sponsor: Sponsored
  beforeAll(async () => {
    stack = await startStack()
    sponsor = await sponsored(stack)
  })
  afterAll(() => stack.stop())

  it.each(Object.entries(entryPoints))(
    "creates and executes for wallets without a wei on EntryPoint %s, and its budget shows what the chain took",
    async (version, entryPoint) => {
      const before = { deposit: await sponsor.deposit(entryPoint), ...(await sponsor.figures()) }
      const minted = await sponsor.minted()
      const settings = { ...sponsor.settings, entryPoint: Address.unsafe(entryPoint) }
      const salt = `poor ${version}`
      const created = await stack.ask(
        CreateWallets.run(stack.caller(), { accounts: [{ salt, walletCustody: 1 }], settings })
      )
      expect(created.status).toBe(1)
      const operations = [sponsor.mint(salt, 4n), sponsor.mint(salt, 5n)]
      const executed = await stack.ask(ExecuteOperations.run(stack.caller(), { operations, settings }))
      expect(executed.status).toBe(1)
      expect((await sponsor.minted()) - minted).toBe(9n)
      expect(await stack.provider.getBalance(stack.predict(salt))).toBe(0n)
      const { booked } = await sponsor.settled()
      const taken = before.deposit - (await sponsor.deposit(entryPoint))
      expect(taken).toBeGreaterThan(0n)
      expect(booked - before.booked).toBe(taken)
    }
  )
})
