import { id as hashOf, Interface, toBeHex } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import { npmInterface } from "../../support/lens/Abis.js"
import * as Hits from "../../support/stack/Hits.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"
import { senderCreators } from "../../support/suite/Calls.js"

const entryPoint = npmInterface("v0.7", "EntryPoint")
const creator = new Interface(["function createSender(bytes initCode) returns (address)"])

interface Call {
  readonly to: string
  readonly data: string
}

const hex = (value: number, bytes: number): string => toBeHex(value, bytes).slice(2)

/** Writes thirty slots: it uses more gas than a deployment, and any call of it is given as much. */
const unarmed = `0x${Array.from({ length: 30 }, (_, slot) => `600160${hex(slot + 1, 1)}55`).join("")}00`

/** Makes the call whenever it is called, and notes in slot 0 that it was good. */
const armed = ({ data, to }: Call): string => {
  const size = hex(data.length / 2 - 1, 2)
  return `0x61${size}6100295f395f5f61${size}5f5f73${to.slice(2)}5af15f5500${data.slice(2)}`
}

/** What its owner has found in the pool, and puts to use. */
const ways: ReadonlyArray<readonly [name: string, call: (initCode: string) => Call]> = [
  ["the factory", (initCode) => ({ to: initCode.slice(0, 42), data: `0x${initCode.slice(42)}` })],
  [
    "the SenderCreator",
    (initCode) => ({
      to: senderCreators["v0.7"],
      data: creator.encodeFunctionData("createSender", [initCode])
    })
  ]
]

describe("a lane with calls of somebody's contract in it", () => {
  let stack: Stack
  let hits: Hits.Hits
  beforeAll(async () => {
    stack = await startStack({ profile: { maxInFlight: 4 } })
    hits = await Hits.make(stack)
    await stack.create("one", "two")
  })
  afterAll(() => stack.stop())

  /** What waits in the pool until the next block, as its other readers see it; `null`: no creation does. */
  const pendingCreation = async (): Promise<string | null> => {
    for (const { input } of await hits.pool()) {
      const [ops] = entryPoint.decodeFunctionData("handleOps", input)
      for (const { initCode } of ops) if (initCode !== "0x") return initCode
    }
    return null
  }

  /** Mines what waits in the pool; how each of it has ended, in nonce order. */
  const mine = async (): Promise<ReadonlyArray<number | null | undefined>> => {
    const sent = [...(await hits.pool())].sort((a, b) => Number(a.nonce) - Number(b.nonce))
    await hits.mine()
    const receipts = await Promise.all(sent.map(({ hash }) => stack.provider.getTransactionReceipt(hash)))
    return receipts.map((receipt) => receipt?.status)
  }

  it.each(ways)("a creation is deployed by no call before it that goes through %s", async (name, call) => {
    const hostile = Address.unsafe(`0x${hashOf(name).slice(26)}`)
    const becomes = (code: string) => stack.provider.send("anvil_setCode", [hostile, code])
    await becomes(unarmed)
    const operation: Operation = {
      salt: "one",
      walletCustody: 1,
      to: hostile,
      funcSignature: "hit()",
      funcParams: []
    }
    const calls = () =>
      stack.runtime.runPromise(
        ExecuteOperations.run(stack.caller(), { operations: [operation], settings: stack.settings })
      )
    const salt = `through ${name}`
    const victim = stack.predict(salt)
    await stack.fund(victim, 10n ** 18n)

    await hits.automine(false)
    try {
      const before = calls()
      await hits.pooled(1)
      const created = stack.runtime.runPromise(
        CreateWallets.run(stack.caller(), {
          accounts: [{ salt, walletCustody: 1 }],
          settings: stack.settings
        })
      )
      // As long as a block takes. What shows itself meanwhile is copied, and the call before it is armed.
      const seen = await expect
        .poll(pendingCreation, { timeout: 2_000 })
        .not.toBeNull()
        .then(pendingCreation, () => null)
      if (seen !== null) await becomes(armed(call(seen)))
      expect(await mine()).toEqual([1])
      await expect.poll(pendingCreation, { timeout: 15_000 }).not.toBeNull()
      const initCode = String(await pendingCreation())
      await becomes(armed(call(initCode)))
      const behind = calls()
      await hits.pooled(2)
      expect(await mine()).toEqual([1, 1])

      expect(await created).toMatchObject({ status: 1 })
      expect(await before).toMatchObject({ status: 1 })
      expect(await behind).toMatchObject({ status: 1 })
      expect(await stack.provider.getCode(victim)).not.toBe("0x")
      // The call behind it did what the one before it would have done.
      expect(await stack.provider.getStorage(hostile, 0)).toBe(toBeHex(1, 32))
    } finally {
      await hits.automine(true)
    }
  })

  it("has as many transactions in flight as the profile allows while nothing is created", async () => {
    await hits.automine(false)
    try {
      const ids = ["a", "b", "c", "d"].map(hashOf)
      const answers: Array<Promise<unknown>> = []
      for (const [n, id] of ids.entries()) {
        const operation = hits.hit(n % 2 === 0 ? "one" : "two", id)
        answers.push(stack.runtime.runPromise(hits.execute(stack.caller(), operation)))
        await hits.pooled(n + 1)
      }
      await hits.mine()
      for (const answer of answers) expect(await answer).toMatchObject({ status: 1 })
      expect(await Promise.all(ids.map(hits.countOf))).toEqual([1, 1, 1, 1])
    } finally {
      await hits.automine(true)
    }
  })
})
