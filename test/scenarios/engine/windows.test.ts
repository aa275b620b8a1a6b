import { Interface } from "ethers"
import { describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../src/domain/signature/Conditions.js"
import * as Journey from "../../support/custody/Journey.js"
import { errorsOf, useStack } from "../../support/stack/Stack.js"

const stack = useStack({}, async (stack) => {
  const [wallet] = await stack.create("wallet")
  await stack.mint(String(wallet), 1_000n)
})

const transfer = (to: string, more: Partial<Operation> = {}) => stack.transfer("wallet", to, "1", more)

describe("the window of an operation", () => {
  /** The windows that a transaction's ops were signed for, in order. */
  const signedUnder = async (txHash: string) => {
    const transaction = await stack.provider.getTransaction(txHash)
    const abi = new Interface([
      "function handleOps((address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)[],address)"
    ])
    const [ops] = abi.decodeFunctionData("handleOps", transaction?.data ?? "0x")
    return ops.map((op: ReadonlyArray<string>) => {
      const decoded = Conditions.decodeSignature(Hex.unsafe(String(op.at(-1))))
      return decoded._tag === "Success" ? decoded.success.conditions : decoded.failure
    })
  }

  it("is signed as requested, and closes after ten minutes without one; the submitter is bound in any case", async () => {
    const to = Journey.recipient()
    const time = await stack.now()
    const { status, txHash } = await stack.ask(
      stack.execute([
        transfer(to),
        transfer(to, { validAfter: time - 5, validUnitl: time + 100 }),
        transfer(to, { validUnitl: time + 100_000 }),
        transfer(to, { validAfter: time - 7, validUnitl: 0 })
      ])
    )
    expect([status, await stack.balanceOf(to)]).toEqual([1, 4n])
    const bundler = stack.signer.address
    const soon = expect.closeTo(time + 600, -2)
    expect(await signedUnder(txHash)).toEqual([
      { validUntil: soon, validAfter: 0, bundler },
      { validUntil: time + 100, validAfter: time - 5, bundler },
      { validUntil: time + 100_000, validAfter: 0, bundler },
      { validUntil: soon, validAfter: time - 7, bundler }
    ])
  })

  it("closes ten minutes after the chain's clock, also when that has just leapt", async () => {
    const to = Journey.recipient()
    expect((await stack.ask(stack.execute([transfer(to)]))).status).toBe(1)
    await stack.later(3_600)
    const time = await stack.now()
    const { status, txHash } = await stack.ask(stack.execute([transfer(to)]))
    expect(status).toBe(1)
    expect(await signedUnder(txHash)).toMatchObject([{ validUntil: expect.closeTo(time + 600, -2) }])
    await stack.later(3_600)
    // The window of the second reads the clock again.
    const both = stack.execute([transfer(to), transfer(to, { validUnitl: time + 100_000 })])
    expect((await stack.ask(both)).status).toBe(1)
  })

  it("is 400 for the whole request when expired, and 422 for its operation when in the future", async () => {
    const to = Journey.recipient()
    const time = await stack.now()
    const before = await stack.nonce()
    const over = stack.execute([transfer(to), transfer(to, { validUnitl: time - 1 })])
    expect(await stack.refused(over)).toMatchObject({
      _tag: "InvalidRequest",
      code: "window_over",
      message: "validity window over",
      details: [{ path: "operations[1].validUnitl" }]
    })
    const early = transfer(to, { validAfter: time + 1_000 })
    expect(await stack.refused(stack.execute([early]))).toMatchObject({
      _tag: "Unprocessable",
      code: "not_valid_yet",
      message: "operation not valid yet",
      details: [{ path: "operations[0]", validAfter: String(time + 1_000) }]
    })
    expect(await stack.nonce()).toBe(before)
    const mixed = await stack.ask(stack.execute([early, transfer(to), transfer(to, { dependsOn: 0 })]))
    const depending = "dependency failed: operation 0"
    expect(errorsOf(mixed)).toEqual(["operation not valid yet", null, depending])
  })

  it("keeps the operation out, wholly undone, when it closes before the transaction is mined", async () => {
    const to = Journey.recipient()
    await stack.automine(false)
    const answer = stack.ask(stack.execute([transfer(to, { validUnitl: (await stack.now()) + 30 })]))
    await stack.pooled(1)
    await stack.later(120)
    await stack.automine(true)
    // Its transaction was mined, reverted: so this is an answer, not a refusal.
    const error = "validity window over before it was executed"
    expect(await answer).toMatchObject({ status: 0, returnData: [{ "0": { success: false, error } }] })
    expect(await stack.balanceOf(to)).toBe(0n)
  })
})
