import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { OpJournal } from "../../../src/application/ports/journal/OpJournal.js"
import { SignerError } from "../../../src/application/ports/Signers.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import * as Nonce from "../../../src/domain/erc4337/Nonce.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../src/domain/signature/Conditions.js"
import * as Make from "../../support/journal/Make.js"
import { Address, errorsOf, type HandedOut, type Runtime, useStack } from "../../support/stack/Stack.js"

const ether = 10n ** 18n
const dead = Address.unsafe("0x000000000000000000000000000000000000dead")

describe("requests that want the same", () => {
  let refusing = false
  const refusal = new SignerError({ reason: "refused", message: "the key provider refused to sign" })
  const stack = useStack(
    {
      wrapSigner: (signer) => ({
        ...signer,
        sign: (digest) => (refusing ? Effect.fail(refusal) : signer.sign(digest))
      })
    },
    async (stack) => {
      for (const wallet of await stack.create("one", "two")) await stack.mint(wallet, 100n)
    }
  )

  const transfer = (salt: string, amount: string) => stack.transfer(salt, dead, amount)
  const execute = (...operations: ReadonlyArray<Operation>) => stack.ask(stack.execute(operations))
  const estimated = async (operation: Operation): Promise<HandedOut> => {
    const { error, userOps } = await stack.estimate([operation])
    const [op] = userOps
    if (op === undefined) throw new Error(String(error))
    return op
  }
  const post = (...ops: ReadonlyArray<HandedOut>) => stack.ask(stack.post(ops, "userOpHash"))
  const decoded = (op: HandedOut) =>
    Result.getOrThrow(UserOperation.decode("v0.7", Hex.unsafe(op.encodedUserOp)))
  /** Another EOA's `handleOps` with an op that any EOA may submit. */
  const copy = (op: HandedOut, overrides: object = {}) => {
    const proof = Hex.unsafe(stack.signer.signingKey.sign(op.userOpHash).serialized)
    const own = { ...decoded(op), signature: Conditions.encodeSignature(Conditions.none, proof) }
    const data = UserOperation.handleOps("v0.7", [own], dead)
    return stack.faucet.sendTransaction({
      to: stack.settings.entryPoint,
      data,
      gasLimit: 1_000_000,
      ...overrides
    })
  }

  /** Takes the nonce keys of a wallet's first configuration. */
  const takeKeys = (salt: string, life: Runtime = stack.runtime) =>
    life.runPromise(
      Effect.flatMap(OpJournal, (opJournal) =>
        Effect.orDie(
          Make.lease(opJournal, {
            authority: Address.unsafe(stack.signer.address),
            chainId: BigInt(stack.anvil.chainId),
            entryPoint: stack.settings.entryPoint,
            wallet: stack.predict(salt),
            holder: "another",
            keys: { from: 0n, to: 15n },
            count: 16,
            ttlMillis: 60_000
          })
        )
      )
    )
  const giveKeysBack = () =>
    stack.ask(Effect.orDie(Effect.flatMap(OpJournal, (opJournal) => opJournal.release("another"))))

  it("a wallet without a free nonce key blocks no other wallet's operation", () =>
    stack.living({ profile: { receiptTimeoutMillis: 500 } }, async (life) => {
      expect(await takeKeys("one", life)).toHaveLength(16)
      const caller = stack.caller()
      // It may stop waiting before the answer.
      await life.runPromiseExit(stack.execute([transfer("one", "0"), transfer("two", "0")], {}, caller))
      const { answer } = await stack.answerOf(life, caller.requestId)
      expect([answer.status, errorsOf(answer)]).toEqual([4, ["wallet busy", null]])
    }))

  it("taken nonce keys block no wallet once it has another configuration", async () => {
    const [wallet = dead] = await stack.create("configured anew")
    const configured: Operation = {
      salt: "configured anew",
      walletCustody: 1,
      to: wallet,
      funcSignature: "setConfig((uint8,uint8,address[],(bytes32,bytes32)[]))",
      funcParams: [["1", "1", [stack.signer.address], []]]
    }
    expect((await execute(configured)).status).toBe(1)
    expect(await takeKeys("configured anew")).toHaveLength(16)
    expect((await execute(transfer("configured anew", "0"))).status).toBe(1)
    await giveKeysBack()
  })

  it("two creations of two wallets in crossed order deploy each once", async () => {
    for (const salt of ["left", "right"]) await stack.fund(stack.predict(salt), ether)
    const orders = [
      ["left", "right"],
      ["right", "left"]
    ]
    const both = await Promise.all(orders.map((salts) => stack.ask(stack.createWallets(salts))))
    expect(both.map(({ status }) => status).sort()).toEqual([1, 2])
  })

  it("two owners concurrently claim one wallet: one gets it, and an owner's wallet rejects other owners", async () => {
    await stack.fund(stack.predict("contested"), ether)
    const creating = (signer: object) => stack.ask(stack.createWallets(["contested"], signer))
    const second = { signer: { clientId: "dev", versionId: "2" } }
    const results = await Promise.allSettled([creating({}), creating(second)])
    expect(results.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"])
    await stack.fund(stack.predict("free"), ether)
    const failure = await stack.refused(stack.createWallets(["free", "two"], second))
    expect(failure.code).toBe("account_exists")
    expect(await stack.provider.getCode(stack.predict("free"))).toBe("0x")
  })

  it("a hundred and twenty wallets go in as few transactions as the gas bound allows", async () => {
    const salts = Array.from({ length: 120 }, (_, n) => `many-${n}`)
    await Promise.all(salts.map((salt) => stack.fund(stack.predict(salt), ether)))
    const { status, txHashes } = await stack.ask(stack.createWallets(salts))
    expect([status, txHashes.length > 1, txHashes.length < 5]).toEqual([1, true, true])
    const codes = await Promise.all(salts.map((salt) => stack.provider.getCode(stack.predict(salt))))
    expect(codes.filter((code) => code === "0x")).toEqual([])
  })

  it("value from an earlier operation counts, and a wallet spends all but its gas", async () => {
    await stack.create("giver", "taker")
    const brought = stack.pay("giver", stack.predict("taker"), ether / 2n)
    expect((await execute(brought, stack.pay("taker", dead, (ether * 5n) / 4n))).status).toBe(1)
    const most = (await stack.provider.getBalance(stack.predict("giver"))) - 500_000n * 3_000_000_000n
    expect((await execute(stack.pay("giver", dead, most))).status).toBe(1)
  })

  it("a creation and an execution at the same moment end both", async () => {
    await stack.fund(stack.predict("young"), ether)
    const [created, executed] = await Promise.allSettled([
      stack.ask(stack.createWallets(["young"])),
      execute(transfer("young", "0"))
    ])
    expect(created).toMatchObject({ status: "fulfilled", value: { status: 1 } })
    if (executed.status === "rejected") expect(String(executed.reason)).toMatch(/wallet not deployed/)
    expect((await execute(transfer("young", "0"))).status).toBe(1)
  })

  it("a refusing signer leaves no nonce key taken", async () => {
    refusing = true
    for (let n = 0; n < 17; n += 1)
      expect((await stack.refused(stack.execute([transfer("one", "0")]))).code).toBe("signer_unavailable")
    refusing = false
    expect((await execute(transfer("one", "0"))).status).toBe(1)
  })

  it("an op that another party has landed is done, and does not count twice for the ops after it", async () => {
    await stack.mint(stack.predict("two"), 900n)
    const amount = ((await stack.balanceOf(stack.predict("two"))) * 4n) / 10n
    const [first, second] = [
      await estimated(transfer("two", String(amount))),
      await estimated(transfer("two", String(amount)))
    ]
    const before = await stack.balanceOf(dead)
    const receipt = await (await copy(first)).wait()
    const result = await post(first, second)
    expect([result.status, result.txHashes[0]]).toEqual([1, receipt?.hash])
    expect((await stack.balanceOf(dead)) - before).toBe(2n * amount)
    // 20 % are left; the misplaced op of 40 % before it would make this one fail.
    const stale = await estimated(transfer("two", "1"))
    const good = await estimated(transfer("two", String(amount / 2n)))
    const late = { ...decoded(stale), nonce: decoded(stale).nonce + 1n }
    const hash = UserOperation.hash("v0.7", stack.settings.entryPoint, BigInt(stack.anvil.chainId), late)
    const misplaced = { ...stale, encodedUserOp: UserOperation.encode("v0.7", late), userOpHash: hash }
    expect(errorsOf(await post(misplaced, good))).toEqual([expect.stringMatching(/out of order/), null])
  })

  it.each(["executed", "posted"])(
    "two requests, %s, that together exceed a wallet's balance never both reach the chain",
    async (how) => {
      await stack.create(`rich ${how}`)
      const sending = [0xa1, 0xb2].map((byte) =>
        stack.pay(`rich ${how}`, `0x${byte.toString(16).repeat(20)}`, (ether * 7n) / 10n)
      )
      const ops = how === "posted" ? await Promise.all(sending.map(estimated)) : []
      const before = await stack.nonce()
      const results = await Promise.allSettled(
        how === "posted" ? ops.map((op) => post(op)) : sending.map((each) => execute(each))
      )
      expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
      expect(await stack.nonce()).toBe(before + 1)
    }
  )

  it("256 operations of one wallet go in order", async () => {
    const before = await stack.balanceOf(dead)
    const operations = Array.from({ length: 256 }, (_, n) => transfer("one", n % 64 === 0 ? "1" : "0"))
    expect((await execute(...operations)).status).toBe(1)
    expect((await stack.balanceOf(dead)) - before).toBe(4n)
  })

  it("an unused estimate holds no nonce keys", async () => {
    await stack.create("tried")
    const tries = Array.from({ length: 3 }, () => transfer("tried", "1"))
    expect(await stack.estimate(tries)).toMatchObject({ status: 0, userOps: [] })
    const { nonce } = decoded(await estimated(transfer("tried", "0")))
    expect(Nonce.keyOf(nonce)).toBe(Nonce.handedOutKeys.from)
  })

  it("ops posted again in separate requests report their own logs, and the transaction once", async () => {
    await stack.mint(stack.predict("one"), 24n)
    const { userOps } = await stack.estimate(["7", "8", "9"].map((amount) => transfer("one", amount)))
    const [one, two, three] = userOps
    if (one === undefined || two === undefined || three === undefined) throw new Error("three were expected")
    const whole = await post(...userOps)
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

  it("an op that failed with a copied neighbour goes again by itself, and lands once", async () => {
    const [a, b] = [await estimated(transfer("one", "1")), await estimated(transfer("one", "2"))]
    const before = await stack.balanceOf(dead)
    await stack.automine(false)
    const sending = post(a, b)
    await stack.pooled(1)
    await copy(a, { maxPriorityFeePerGas: 50n * 10n ** 9n, maxFeePerGas: 100n * 10n ** 9n })
    await stack.mine()
    await stack.automine(true)
    const { returnData, status } = await sending
    expect(status).toBe(1)
    expect(returnData[0]?.["0"]?.txHash).not.toBe(returnData[1]?.["1"]?.txHash)
    expect(errorsOf(await post(b))).toEqual([null])
    expect((await stack.balanceOf(dead)) - before).toBe(3n)
  })
})
