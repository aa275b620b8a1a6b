import { getBytes } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { Address, keyOf, type Stack, startStack } from "../../support/stack/Stack.js"

const dead = Address.unsafe("0x000000000000000000000000000000000000dead")

describe.each(["v0.6", "v0.7", "v0.8"] as const)("estimated ops on EntryPoint %s", (version) => {
  let stack: Stack
  let token: Address.Address
  beforeAll(async () => {
    stack = await startStack({ entryPoint: version })
    token = Address.unsafe(await stack.token.getAddress())
    const [wallet] = await stack.create("owner")
    await stack.mint(String(wallet), 1_000n)
  })
  afterAll(() => stack.stop())

  const estimate = (...amounts: ReadonlyArray<string>) =>
    stack.ask(
      EstimateGas.run(stack.caller(), {
        operations: amounts.map((amount) => ({
          salt: "owner",
          walletCustody: 1,
          to: token,
          funcSignature: "transfer(address,uint256)",
          funcParams: [dead, amount]
        })),
        settings: stack.settings
      })
    )
  const encoded = (op: EstimateGas.Response["userOps"][number], signature?: string) => ({
    encodedUserOp: Hex.unsafe(op.encodedUserOp),
    userOpHash: Hex.unsafe32(op.userOpHash),
    walletCustody: 1 as const,
    ...(signature !== undefined && { signature: Hex.unsafe(signature) })
  })
  const execute = (...operations: ReadonlyArray<ReturnType<typeof encoded>>) =>
    ExecuteEncoded.run(stack.caller(), { operations, settings: stack.settings })
  const received = () => stack.balanceOf(dead)

  it("go unchanged through executeEncoded, signed by the service", async () => {
    const { error, gas, status, userOps } = await estimate("1", "2")
    expect({ status, error }).toEqual({ status: 1, error: null })
    expect(gas).toBeGreaterThan(100_000)
    expect(userOps.map(({ aggrIndexes }) => aggrIndexes)).toEqual([[0], [1]])
    const before = await received()
    const [first, second] = userOps.map((op) => encoded(op))
    if (first === undefined || second === undefined) throw new Error("two ops were expected")
    const result = await stack.ask(execute(second, first))
    expect(result.status).toBe(1)
    expect((await received()) - before).toBe(3n)
  })

  it.each(["userOpHash", "signingHash"] as const)(
    "are accepted with the owner's signature over %s",
    async (which) => {
      const before = await received()
      const raw = await estimate("4")
      const [op] = raw.userOps
      if (op === undefined) throw new Error("an op was expected")
      const signature = stack.signer.signingKey.sign(op[which]).serialized
      expect((await stack.ask(execute(encoded(op, signature)))).status).toBe(1)
      const [next] = (await estimate("5")).userOps
      if (next === undefined) throw new Error("an op was expected")
      const personal = await stack.signer.signMessage(getBytes(next[which]))
      expect((await stack.ask(execute(encoded(next, personal)))).status).toBe(1)
      expect((await received()) - before).toBe(9n)
    }
  )

  it("posted again give the same outcome, and are not executed again", async () => {
    const [op] = (await estimate("6")).userOps
    if (op === undefined) throw new Error("an op was expected")
    const before = await received()
    const [first, together] = await Promise.all([
      stack.ask(execute(encoded(op))),
      stack.ask(execute(encoded(op)))
    ])
    const later = await stack.ask(execute(encoded(op)))
    for (const again of [together, later]) {
      expect(again.status).toBe(1)
      expect(again.txHash).toBe(first.txHash)
    }
    expect((await received()) - before).toBe(6n)
  })

  it("posted again apart from those beside which they landed tell of their own logs, and of the transaction once", async () => {
    const { userOps } = await estimate("7", "8", "9")
    const [one, two, three] = userOps.map((op) => encoded(op))
    if (one === undefined || two === undefined || three === undefined)
      throw new Error("three ops were expected")
    const whole = await stack.ask(execute(one, two, three))
    expect(whole.txHashes).toHaveLength(1)
    const amounts = ({ logs }: typeof whole) =>
      logs.flatMap(({ args, eventName }) =>
        eventName === "Transfer" ? [(args as { readonly value: string }).value] : []
      )
    expect(amounts(whole)).toEqual(["7", "8", "9"])
    const again = await stack.ask(execute(two))
    expect(amounts(again)).toEqual(["8"])
    const { gasUsed, txHash, txHashes } = whole
    expect(again).toMatchObject({ status: 1, gasUsed, txHash, txHashes })
    expect(await stack.ask(execute(three, one))).toMatchObject({ status: 1, gasUsed, txHash, txHashes })
  })

  it("with a stranger's signature are 422 with what was expected", async () => {
    const [op] = (await estimate("1")).userOps
    if (op === undefined) throw new Error("an op was expected")
    const failure = await stack.refused(
      execute(encoded(op, keyOf(9).signingKey.sign(op.userOpHash).serialized))
    )
    expect(failure).toMatchObject({ _tag: "Unprocessable", code: "invalid_signature" })
    expect(failure.message).toContain(op.signingHash)
  })

  it("with another hash are 400 that names the right one", async () => {
    const [op] = (await estimate("1")).userOps
    if (op === undefined) throw new Error("an op was expected")
    const failure = await stack.refused(
      execute({ ...encoded(op), userOpHash: Hex.unsafe32(`0x${"11".repeat(32)}`) })
    )
    expect(failure).toMatchObject({ _tag: "InvalidRequest", code: "hash_mismatch" })
    expect(failure.details[0]?.message).toContain(op.userOpHash)
  })

  it("never share a nonce", async () => {
    const many = await Promise.all(Array.from({ length: 5 }, () => estimate("1", "1")))
    const hashes = many.flatMap(({ userOps }) => userOps.map(({ userOpHash }) => userOpHash))
    expect(new Set(hashes).size).toBe(10)
  })

  it("that cannot succeed are named, and the good ones are listed", async () => {
    const { error, status, userOps } = await estimate("1", "1000000")
    expect(status).toBe(0)
    expect(error).toMatch(/^operations\[1\]: ERC20InsufficientBalance\(/)
    expect(userOps.map(({ aggrIndexes }) => aggrIndexes)).toEqual([[0]])
  })
})
