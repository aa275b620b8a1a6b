import * as Effect from "effect/Effect"
import { hexlify, randomBytes } from "ethers"
import { expect, it } from "vitest"
import type { ChainRpc } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Gas from "../../../src/domain/erc4337/gas/Gas.js"
import * as Handed from "../../support/stack/Handed.js"
import { useStack } from "../../support/stack/Stack.js"

/** The gas of every simulated bundle, in order. */
const simulated: Array<bigint> = []
/** The node's gas figure instead of the measured one; null: the measured one. */
let told: bigint | null = null

const listening = (nodes: ChainRpc["Service"]): ChainRpc["Service"] => ({
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

/** A contract that accepts every call. */
const taker = `0x${"7c".repeat(20)}`
const stack = useStack({ wrapChain: listening }, async (stack) => {
  await stack.create("payer")
  await stack.provider.send("anvil_setCode", [taker, "0x00"])
})

/** A call with this many bytes of data, which its target ignores. */
const withBytes = (count: number) =>
  stack.pay("payer", taker, 0n, {
    funcSignature: "anything(bytes)",
    funcParams: [hexlify(randomBytes(count))]
  })

it.each([0, 1_000, 20_000])(
  "a simulated bundle takes the gas of its transaction: %i bytes more",
  async (count) => {
    simulated.length = 0
    const { txHash } = await stack.ask(stack.execute([withBytes(count)]))
    const receipt = await stack.provider.getTransactionReceipt(txHash)
    expect(simulated.at(-1)).toBe(receipt?.gasUsed)
  }
)

it("a bundle takes at least its calldata cost, whatever the node reports, and the service's EOA does not pay for it", async () => {
  const handed = Handed.make(stack)
  const [op] = await handed.out([withBytes(20_000)])
  if (op === undefined) throw new Error("an op was expected")
  // Charged for the calldata at 16 gas a byte, below EIP-7623's floor for a bundle with little else.
  const least = Gas.preVerificationGas(op.op, { version: "v0.7", measuredGas: 2n ** 64n })
  told = 21_000n
  const cheap = { op: { ...op.op, preVerificationGas: least + 10_000n } }
  const failure = await stack.refused(handed.post(cheap)).finally(() => {
    told = null
  })
  expect(failure).toMatchObject({
    code: "submission_unpaid",
    details: [
      { message: expect.stringMatching(/the transaction takes [0-9]+ gas, and the ops are charged for/) }
    ]
  })
})
