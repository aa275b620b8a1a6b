import { Interface } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../src/domain/signature/Conditions.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import * as Journey from "../../support/custody/Journey.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
  const [wallet] = await stack.create("wallet")
  await stack.mint(String(wallet), 1_000n)
})
afterAll(() => stack.stop())

const now = async () => Number((await stack.provider.getBlock("latest"))?.timestamp)
const transfer = (to: string, window: Pick<Operation, "validAfter" | "validUnitl">): Operation => ({
  salt: "wallet",
  walletCustody: 1,
  to: Address.unsafe(String(stack.token.target)),
  funcSignature: "transfer(address,uint256)",
  funcParams: [to, "1"],
  ...window
})

describe.each(entryPointVersions)("the window of an operation, on EntryPoint %s", (version) => {
  const execute = (operations: ReadonlyArray<Operation>) =>
    ExecuteOperations.run(stack.caller(), {
      operations,
      settings: { ...stack.settings, entryPoint: Address.unsafe(entryPoints[version]) }
    })

  /** Under which conditions the ops of a transaction were signed, in order. */
  const signedUnder = async (txHash: string) => {
    const transaction = await stack.provider.getTransaction(txHash)
    const names =
      version === "v0.6" ? "bytes,uint256,uint256,uint256,uint256,uint256" : "bytes,bytes32,uint256,bytes32"
    const abi = new Interface([`function handleOps((address,uint256,bytes,${names},bytes,bytes)[],address)`])
    const [ops] = abi.decodeFunctionData("handleOps", transaction?.data ?? "0x")
    return ops.map((op: ReadonlyArray<string>) => {
      const decoded = Conditions.decodeSignature(Hex.unsafe(String(op.at(-1))))
      return decoded._tag === "Right" ? decoded.right.conditions : decoded.left
    })
  }

  it("is signed as it is given, and closes after ten minutes where it is not; the submitter is bound in any case", async () => {
    const to = Journey.recipient()
    const time = await now()
    const result = await stack.ask(
      execute([
        transfer(to, {}),
        transfer(to, { validAfter: time - 5, validUnitl: time + 100 }),
        transfer(to, { validUnitl: time + 100_000 }),
        transfer(to, { validAfter: time - 7, validUnitl: 0 })
      ])
    )
    expect(result.status).toBe(1)
    expect(await stack.balanceOf(to)).toBe(4n)
    const bundler = stack.signer.address
    expect(await signedUnder(result.txHash)).toEqual([
      { validUntil: expect.closeTo(time + 600, -2), validAfter: 0, bundler },
      { validUntil: time + 100, validAfter: time - 5, bundler },
      { validUntil: time + 100_000, validAfter: 0, bundler },
      { validUntil: expect.closeTo(time + 600, -2), validAfter: time - 7, bundler }
    ])
  })

  it("closes ten minutes after the chain's clock, also when that has just leapt", async () => {
    const to = Journey.recipient()
    expect((await stack.ask(execute([transfer(to, {})]))).status).toBe(1)
    await stack.provider.send("evm_increaseTime", [3_600])
    await stack.provider.send("evm_mine", [])
    const time = await now()
    const { status, txHash } = await stack.ask(execute([transfer(to, {})]))
    expect(status).toBe(1)
    expect(await signedUnder(txHash)).toMatchObject([{ validUntil: expect.closeTo(time + 600, -2) }])
    await stack.provider.send("evm_increaseTime", [3_600])
    await stack.provider.send("evm_mine", [])
    // The clock is read anew for the window of the second.
    const both = execute([transfer(to, {}), transfer(to, { validUnitl: time + 100_000 })])
    expect((await stack.ask(both)).status).toBe(1)
  })

  it("that is over is 400 for the whole request, and one that has not begun 422 for its operation", async () => {
    const to = Journey.recipient()
    const time = await now()
    const before = await stack.provider.getTransactionCount(stack.signer.address)
    expect(
      await stack.refused(execute([transfer(to, {}), transfer(to, { validUnitl: time - 1 })]))
    ).toMatchObject({
      _tag: "InvalidRequest",
      code: "window_over",
      message: "validity window over",
      details: [{ path: "operations[1].validUnitl" }]
    })
    expect(await stack.refused(execute([transfer(to, { validAfter: time + 1_000 })]))).toMatchObject({
      _tag: "Unprocessable",
      code: "not_valid_yet",
      message: "operation not valid yet",
      details: [{ path: "operations[0]", validAfter: String(time + 1_000) }]
    })
    expect(await stack.provider.getTransactionCount(stack.signer.address)).toBe(before)
    const result = await stack.ask(
      execute([
        transfer(to, { validAfter: time + 1_000 }),
        transfer(to, {}),
        { ...transfer(to, {}), dependsOn: 0 }
      ])
    )
    expect(result.returnData.map((element, index) => element[index]?.error)).toEqual([
      "operation not valid yet",
      null,
      "dependency failed: operation 0"
    ])
  })

  it("that closes before the transaction is mined keeps the operation out, and nothing of it is done", async () => {
    const to = Journey.recipient()
    await stack.provider.send("evm_setAutomine", [false])
    try {
      const time = await now()
      const answer = stack.ask(execute([transfer(to, { validUnitl: time + 30 })]))
      await expect
        .poll(async () => Number((await stack.provider.send("txpool_status", [])).pending), {
          timeout: 10_000
        })
        .toBe(1)
      await stack.provider.send("evm_increaseTime", [120])
      await stack.provider.send("evm_mine", [])
      await stack.provider.send("evm_setAutomine", [true])
      // Its transaction was mined, reverted: so this is an answer, not a refusal.
      const result = await answer
      expect(result.status).toBe(0)
      expect(result.returnData[0]?.["0"]).toMatchObject({
        success: false,
        error: "validity window over before it was executed"
      })
      expect(await stack.balanceOf(to)).toBe(0n)
    } finally {
      await stack.provider.send("evm_setAutomine", [true])
    }
  })
})
