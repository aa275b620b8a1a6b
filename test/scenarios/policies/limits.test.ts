import * as Effect from "effect/Effect"
import { afterEach, describe, expect, it } from "vitest"
import { Budgets } from "../../../src/application/ports/Budgets.js"
import type { Limit } from "../../../src/domain/policy/Policy.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import { type Fault, startFaultyNode } from "../../support/stack/FaultyNode.js"
import { errorsOf, type Runtime, useStack } from "../../support/stack/Stack.js"
import * as Policed from "./Policed.js"

const stack = useStack({ profile: { receiptTimeoutMillis: 3_000 } }, async (stack) => {
  for (const wallet of await stack.create("one", "two")) await stack.mint(wallet, 1_000_000n)
})

const stops: Array<() => Promise<void>> = []
afterEach(() => Promise.all(stops.splice(0).map((stop) => stop())))

const limit = (asset: string, max: bigint, more: Partial<Limit> = {}) =>
  Policed.cap(stack.anvil.chainId, asset, max, more)

const tokenOf = (): string => Address.unsafe(String(stack.token.target))

/** Open holds of the chain. */
const heldOf = (life: Runtime) =>
  life.runPromise(Effect.flatMap(Budgets, ({ open }) => Effect.orDie(open(BigInt(stack.anvil.chainId)))))

/** A life with limits and a separate journal. */
const withLimits = (
  limits: ReadonlyArray<Limit>,
  body: (life: Runtime) => Promise<void>,
  layer: "operator" | "account" = "account"
) =>
  stack.living({ database: stack.database() }, async (life) => {
    const rules = Policed.allowing("native", "erc20.transfer")
    await Policed.put(life, "account", { rules, limits }, layer)
    await body(life)
  })

describe("a limit", () => {
  it("holds over parallel requests, and books what has landed", () =>
    withLimits([limit(tokenOf(), 150n)], async (life) => {
      const to = Policed.shop()
      const answers = await Promise.all(
        ["one", "two", "one"].map((salt) =>
          life.runPromise(
            Effect.match(stack.execute([stack.transfer(salt, to, "100")]), {
              onFailure: ({ code }) => code as string,
              onSuccess: () => "paid"
            })
          )
        )
      )
      expect(answers.toSorted()).toEqual(["paid", "policy_refused", "policy_refused"])
      expect(await stack.balanceOf(to)).toBe(100n)
      await stack.mine()
      await expect.poll(async () => (await heldOf(life)).length, { timeout: 10_000 }).toBe(0)
      const last = await life.runPromise(stack.execute([stack.transfer("one", to, "50")]))
      expect(errorsOf(last)).toEqual([null])
    }))

  it("a limit of a request counts its elements in their order", () =>
    withLimits([limit(tokenOf(), 150n, { per: "request" })], async (life) => {
      const to = Policed.shop()
      const payments = ["100", "100", "50"].map((amount) => stack.transfer("one", to, amount))
      const answer = await life.runPromise(stack.execute(payments))
      expect(errorsOf(answer)).toEqual([
        null,
        expect.stringContaining("account version 1, limit cap: 100 asked, 50 left"),
        null
      ])
      expect(errorsOf(await life.runPromise(stack.execute(payments.slice(0, 1))))).toEqual([null])
    }))

  it("a limit of the operator shows no numbers", () =>
    withLimits(
      [limit(tokenOf(), 150n)],
      async (life) => {
        const failure = await life.runPromise(
          Effect.flip(stack.execute([stack.transfer("one", Policed.shop(), "151")]))
        )
        expect(failure.code).toBe("policy_refused")
        expect(failure.message).toMatch(
          /^the operator's policy of account refuses it by its limit .*; the operator/
        )
        expect(JSON.stringify(failure)).not.toMatch(/15[01]/)
      },
      "operator"
    ))

  it("counts transactions of the signer until they are settled, and after", () =>
    withLimits([limit("native", 150n)], async (life) => {
      const to = Policed.shop()
      await life.runPromise(stack.transact({ to, value: 100n }))
      const refusal = await life.runPromise(Effect.flip(stack.transact({ to, value: 100n })))
      expect(refusal.code).toBe("policy_refused")
      expect(await stack.provider.getBalance(to)).toBe(100n)
      await stack.mine()
      await expect.poll(async () => (await heldOf(life)).length, { timeout: 10_000 }).toBe(0)
    }))
})

const lies: ReadonlyArray<readonly [string, Fault]> = [
  [
    "denies receipts and logs",
    async ({ method }, ask) => {
      if (method === "eth_getTransactionReceipt" || method === "eth_getTransactionByHash")
        return { result: null }
      return method === "eth_getLogs" ? { result: [] } : ask()
    }
  ],
  [
    "says that transactions are reverted",
    async ({ method }, ask) => {
      const answer = await ask()
      if (method === "eth_getLogs") return { result: [] }
      if (method !== "eth_getTransactionReceipt" || !("result" in answer) || answer.result === null)
        return answer
      return { result: { ...(answer.result as object), status: "0x0", logs: [] } }
    }
  ]
]

describe("a limit of a caller whose node", () => {
  it.each(lies)("%s holds for operations", (_, lie) =>
    withLimits([limit(tokenOf(), 150n)], async (life) => {
      const to = Policed.shop()
      const node = await startFaultyNode(stack.anvil.url)
      stops.push(node.stop)
      node.behave(lie)
      for (let round = 0; round < 3; round += 1)
        await life.runPromise(
          Effect.ignore(stack.execute([stack.transfer("one", to, "100")], { rpc: node.url }))
        )
      expect(await stack.balanceOf(to)).toBe(100n)
    })
  )

  it.each(lies)("%s holds for transactions of the signer", (_, lie) =>
    withLimits([limit("native", 150n)], async (life) => {
      const to = Policed.shop()
      const node = await startFaultyNode(stack.anvil.url)
      stops.push(node.stop)
      node.behave(lie)
      for (let round = 0; round < 3; round += 1)
        await life.runPromise(Effect.ignore(stack.transact({ to, value: 100n }, { rpc: node.url })))
      expect(await stack.provider.getBalance(to)).toBe(100n)
    })
  )
})
