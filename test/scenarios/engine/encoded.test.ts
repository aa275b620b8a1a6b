import { getBytes } from "ethers"
import { describe, expect, it } from "vitest"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { type HandedOut, keyOf, useStack } from "../../support/stack/Stack.js"

const dead = "0x000000000000000000000000000000000000dEaD"

describe("estimated ops", () => {
  const stack = useStack({}, async (stack) => {
    const [wallet] = await stack.create("owner")
    await stack.mint(String(wallet), 1_000n)
  })

  const estimate = (...amounts: ReadonlyArray<string>) =>
    stack.estimate(amounts.map((amount) => stack.transfer("owner", dead, amount)))
  const estimated = async (amount: string): Promise<HandedOut> => {
    const [op] = (await estimate(amount)).userOps
    if (op === undefined) throw new Error("an op was expected")
    return op
  }
  const post = (...ops: ReadonlyArray<HandedOut>) => stack.ask(stack.post(ops))
  const signedElsewhere = ({ encodedUserOp, userOpHash }: HandedOut, signature: string) =>
    ExecuteEncoded.run(stack.caller(), {
      operations: [
        {
          encodedUserOp: Hex.unsafe(encodedUserOp),
          userOpHash: Hex.unsafe32(userOpHash),
          walletCustody: 1,
          signature: Hex.unsafe(signature)
        }
      ],
      settings: stack.settings
    })
  const received = () => stack.balanceOf(dead)

  it("go unchanged through executeEncoded, signed by the service", async () => {
    const { error, gas, status, userOps } = await estimate("1", "2")
    expect({ status, error }).toEqual({ status: 1, error: null })
    expect(gas).toBeGreaterThan(100_000)
    expect(userOps.map(({ aggrIndexes }) => aggrIndexes)).toEqual([[0], [1]])
    const before = await received()
    expect((await post(...[...userOps].reverse())).status).toBe(1)
    expect((await received()) - before).toBe(3n)
  })

  it.each(["userOpHash", "signingHash"] as const)(
    "are accepted with the owner's signature over %s, raw and as a personal message",
    async (which) => {
      const before = await received()
      expect((await stack.ask(stack.post([await estimated("4")], which))).status).toBe(1)
      const next = await estimated("5")
      const personal = await stack.signer.signMessage(getBytes(next[which]))
      expect((await stack.ask(signedElsewhere(next, personal))).status).toBe(1)
      expect((await received()) - before).toBe(9n)
    }
  )

  it("posted again give the same outcome, and are not executed again", async () => {
    const op = await estimated("6")
    const before = await received()
    const [{ txHash }, together] = await Promise.all([post(op), post(op)])
    for (const again of [together, await post(op)]) expect(again).toMatchObject({ status: 1, txHash })
    expect((await received()) - before).toBe(6n)
  })

  it("posted again apart from those beside which they landed tell of their own logs, and of the transaction once", async () => {
    const ops = (await estimate("7", "8", "9")).userOps
    const [one, two, three] = ops
    if (one === undefined || two === undefined || three === undefined) throw new Error("three were expected")
    const whole = await post(...ops)
    const { gasUsed, txHash, txHashes } = whole
    expect(txHashes).toHaveLength(1)
    const amounts = ({ logs }: typeof whole) =>
      logs.flatMap(({ args, eventName }) =>
        eventName === "Transfer" ? [(args as { readonly value: string }).value] : []
      )
    expect(amounts(whole)).toEqual(["7", "8", "9"])
    const again = await post(two)
    expect(amounts(again)).toEqual(["8"])
    expect(again).toMatchObject({ status: 1, gasUsed, txHash, txHashes })
    expect(await post(three, one)).toMatchObject({ status: 1, gasUsed, txHash, txHashes })
  })

  it("with a stranger's signature are 422 with what was expected, with another hash 400 that names the right one", async () => {
    const op = await estimated("1")
    const stranger = keyOf(9).signingKey.sign(op.userOpHash).serialized
    expect(await stack.refused(signedElsewhere(op, stranger))).toMatchObject({
      _tag: "Unprocessable",
      code: "invalid_signature",
      message: expect.stringContaining(op.signingHash)
    })
    expect(await stack.refused(stack.post([{ ...op, userOpHash: `0x${"11".repeat(32)}` }]))).toMatchObject({
      _tag: "InvalidRequest",
      code: "hash_mismatch",
      details: [{ message: expect.stringContaining(op.userOpHash) }]
    })
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
