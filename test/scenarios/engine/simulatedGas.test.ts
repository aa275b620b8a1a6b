import * as Effect from "effect/Effect"
import { hexlify, randomBytes } from "ethers"
import { afterAll, beforeAll, expect, it } from "vitest"
import type { ChainRpc } from "../../../src/application/ports/chain/ChainRpc.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import * as Handed from "../../support/stack/Handed.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

/** The gas of every bundle that was simulated, in order. */
const simulated: Array<bigint> = []
/** What the node tells instead; null: what it found. */
let told: bigint | null = null

const listening = (nodes: ChainRpc["Type"]): ChainRpc["Type"] => ({
  ...nodes,
  connect: (...args) =>
    Effect.map(nodes.connect(...args), (client) => ({
      ...client,
      simulate: (calls) =>
        Effect.map(client.simulate(calls), (results) => {
          simulated.push(...results.map(({ gasUsed }) => gasUsed))
          return told === null ? results : results.map((result) => ({ ...result, gasUsed: told ?? 0n }))
        })
    }))
})

/** A contract that takes every call. */
const taker = Address.unsafe(`0x${"7c".repeat(20)}`)

let stack: Stack
beforeAll(async () => {
  stack = await startStack({ wrapChain: listening })
  await stack.create("payer")
  await stack.mint(stack.predict("payer"), 10n)
  await stack.provider.send("anvil_setCode", [taker, "0x00"])
})
afterAll(() => stack.stop())

/** A call with so many bytes of data, which its target ignores. */
const withBytes = (count: number) => ({
  salt: "payer",
  walletCustody: 1 as const,
  to: taker,
  funcSignature: "anything(bytes)",
  funcParams: [hexlify(randomBytes(count))]
})

it.each([0, 1_000, 20_000])(
  "a simulated bundle takes the gas of its transaction: %i bytes more",
  async (count) => {
    simulated.length = 0
    const { txHash } = await stack.ask(
      ExecuteOperations.run(stack.caller(), { operations: [withBytes(count)], settings: stack.settings })
    )
    const receipt = await stack.provider.getTransactionReceipt(txHash)
    expect(simulated.at(-1)).toBe(receipt?.gasUsed)
  }
)

it("a bundle takes what its calldata costs at least, whatever the node tells, and the service's EOA does not pay for it", async () => {
  const handed = Handed.make(stack)
  const [op] = await handed.out([withBytes(20_000)])
  if (op === undefined) throw new Error("an op was expected")
  // Charged for the calldata at 16 gas a byte, which is less than EIP-7623's floor for a bundle of little else.
  const least = Gas.preVerificationGas(op.op, { version: "v0.7", measuredGas: 2n ** 64n })
  const cheap = { op: { ...op.op, preVerificationGas: least + 10_000n } }
  told = 21_000n
  try {
    expect(await stack.refused(handed.post(cheap))).toMatchObject({
      code: "submission_unpaid",
      details: [
        { message: expect.stringMatching(/the transaction takes [0-9]+ gas, and the ops are charged for/) }
      ]
    })
  } finally {
    told = null
  }
})
