import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Operation } from "../../../src/application/intake/ops/Operation.js"
import { OpJournal } from "../../../src/application/ports/journal/OpJournal.js"
import { SignerError } from "../../../src/application/ports/Signers.js"
import * as EstimateGas from "../../../src/application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/usecases/operations/ExecuteOperations.js"
import * as CreateWallets from "../../../src/application/usecases/wallets/CreateWallets.js"
import * as Nonce from "../../../src/domain/erc4337/Nonce.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../src/domain/signature/Conditions.js"
import * as Make from "../../support/journal/Make.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

const ether = 10n ** 18n
const dead = Address.unsafe("0x000000000000000000000000000000000000dead")

describe("requests that want the same", () => {
  let stack: Stack
  let token: Address.Address
  let refusing = false
  beforeAll(async () => {
    stack = await startStack({
      profile: { receiptTimeoutMillis: 4_000 },
      wrapSigner: (signer) => ({
        ...signer,
        sign: (digest) =>
          refusing
            ? Effect.fail(new SignerError({ reason: "refused", message: "the key provider refused to sign" }))
            : signer.sign(digest)
      })
    })
    token = Address.unsafe(await stack.token.getAddress())
    for (const wallet of await stack.create("one", "two")) await stack.mint(wallet, 100n)
  })
  afterAll(() => stack.stop())

  const transfer = (salt: string, amount: string): Operation => ({
    salt,
    walletCustody: 1,
    to: token,
    funcSignature: "transfer(address,uint256)",
    funcParams: [dead, amount]
  })
  const execute = (...operations: ReadonlyArray<Operation>) =>
    ExecuteOperations.run(stack.caller(), { operations, settings: stack.settings })
  const create = (...salts: ReadonlyArray<string>) =>
    CreateWallets.run(stack.caller(), {
      accounts: salts.map((salt) => ({ salt, walletCustody: 1 as const })),
      settings: stack.settings
    })
  const estimate = (...operations: ReadonlyArray<Operation>) =>
    stack.ask(EstimateGas.run(stack.caller(), { operations, settings: stack.settings }))

  const signed = (op: EstimateGas.Response["userOps"][number]) => {
    const proof = Hex.unsafe(stack.signer.signingKey.sign(op.userOpHash).serialized)
    return {
      encodedUserOp: Hex.unsafe(op.encodedUserOp),
      userOpHash: Hex.unsafe32(op.userOpHash),
      walletCustody: 1 as const,
      signature: proof
    }
  }
  const post = (...operations: ReadonlyArray<ReturnType<typeof signed>>) =>
    ExecuteEncoded.run(stack.caller(), { operations, settings: stack.settings })
  /** Somebody else's `handleOps` with an op that anybody may submit. */
  const copy = (op: ReturnType<typeof signed>, overrides: object = {}) => {
    const signature = Conditions.encodeSignature(Conditions.none, op.signature)
    const own = { ...Either.getOrThrow(UserOperation.decode("v0.7", op.encodedUserOp)), signature }
    return stack.faucet.sendTransaction({
      to: stack.settings.entryPoint,
      data: UserOperation.handleOps("v0.7", [own], Address.unsafe(dead)),
      gasLimit: 1_000_000,
      ...overrides
    })
  }

  /** Takes the nonce keys of a wallet's first configuration. */
  const takeKeys = (salt: string) =>
    stack.ask(
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

  it("a wallet without a free nonce key does not keep another one's operation from going", async () => {
    expect(await takeKeys("one")).toHaveLength(16)
    const result = await stack.ask(execute(transfer("one", "0"), transfer("two", "0")))
    expect(result.status).toBe(4)
    expect(result.returnData[0]?.["0"]?.error).toBe("wallet busy")
    expect(result.returnData[1]?.["1"]?.success).toBe(true)
    await giveKeysBack()
  })

  it("nonce keys that are taken keep a wallet from nothing once it has another configuration", async () => {
    const [wallet] = await stack.create("configured anew")
    const configured: Operation = {
      salt: "configured anew",
      walletCustody: 1,
      to: Address.unsafe(String(wallet)),
      funcSignature: "setConfig((uint8,uint8,address[],(bytes32,bytes32)[]))",
      funcParams: [["1", "1", [stack.signer.address], []]]
    }
    expect((await stack.ask(execute(configured))).status).toBe(1)
    expect(await takeKeys("configured anew")).toHaveLength(16)
    expect((await stack.ask(execute(transfer("configured anew", "0")))).status).toBe(1)
    await giveKeysBack()
  })

  it("two creations of two wallets in crossed order deploy each once", async () => {
    for (const salt of ["left", "right"]) await stack.fund(stack.predict(salt), ether)
    const both = await Promise.all([stack.ask(create("left", "right")), stack.ask(create("right", "left"))])
    expect(both.map(({ status }) => status).sort()).toEqual([1, 2])
  })

  it("a creation and an execution at the same moment end both", async () => {
    await stack.fund(stack.predict("young"), ether)
    const [created, executed] = await Promise.allSettled([
      stack.ask(create("young")),
      stack.ask(execute(transfer("young", "0")))
    ])
    expect(created).toMatchObject({ status: "fulfilled", value: { status: 1 } })
    if (executed.status === "rejected") expect(String(executed.reason)).toMatch(/wallet not deployed/)
    expect((await stack.ask(execute(transfer("young", "0")))).status).toBe(1)
  })

  it("a signer that refuses leaves no nonce key taken", async () => {
    refusing = true
    for (let n = 0; n < 17; n += 1)
      await expect(stack.ask(execute(transfer("one", "0")))).rejects.toThrow(/signer unavailable/)
    refusing = false
    expect((await stack.ask(execute(transfer("one", "0")))).status).toBe(1)
  })

  it("an op that somebody else has landed is done, and does not count twice for those behind it", async () => {
    await stack.mint(stack.predict("two"), 900n)
    const amount = ((await stack.balanceOf(stack.predict("two"))) * 4n) / 10n
    const [first] = (await estimate(transfer("two", String(amount)))).userOps
    const [second] = (await estimate(transfer("two", String(amount)))).userOps
    if (first === undefined || second === undefined) throw new Error("two ops were expected")
    const before = await stack.balanceOf(dead)
    const receipt = await (await copy(signed(first))).wait()
    const result = await stack.ask(post(signed(first), signed(second)))
    expect(result.status).toBe(1)
    expect(result.txHashes[0]).toBe(receipt?.hash)
    expect((await stack.balanceOf(dead)) - before).toBe(2n * amount)
    // 20 % are left; the misplaced op of 40 % before it would make this one fail.
    const [stale] = (await estimate(transfer("two", "1"))).userOps
    const [good] = (await estimate(transfer("two", String(amount / 2n)))).userOps
    if (stale === undefined || good === undefined) throw new Error("two ops were expected")
    const decoded = Either.getOrThrow(UserOperation.decode("v0.7", Hex.unsafe(stale.encodedUserOp)))
    const late = { ...decoded, nonce: decoded.nonce + 1n }
    const hash = UserOperation.hash("v0.7", stack.settings.entryPoint, BigInt(stack.anvil.chainId), late)
    const misplaced = { ...stale, encodedUserOp: UserOperation.encode("v0.7", late), userOpHash: hash }
    const mixed = await stack.ask(post(signed(misplaced), signed(good)))
    expect(mixed.returnData[0]?.["0"]?.error).toMatch(/out of order/)
    expect(mixed.returnData[1]?.["1"]?.success).toBe(true)
  })

  it("the values that two encoded ops send are reserved as well", async () => {
    await stack.create("rich")
    const send = (to: string): Operation => ({
      salt: "rich",
      walletCustody: 1,
      to: Address.unsafe(to),
      funcSignature: "receive()",
      value: (ether * 7n) / 10n
    })
    const [a] = (await estimate(send(`0x${"a1".repeat(20)}`))).userOps
    const [b] = (await estimate(send(`0x${"b2".repeat(20)}`))).userOps
    if (a === undefined || b === undefined) throw new Error("two ops were expected")
    const before = await stack.provider.getTransactionCount(stack.signer.address)
    const results = await Promise.allSettled([stack.ask(post(signed(a))), stack.ask(post(signed(b)))])
    expect(results.filter(({ status }) => status === "fulfilled")).toHaveLength(1)
    expect(await stack.provider.getTransactionCount(stack.signer.address)).toBe(before + 1)
  })

  it("256 operations of one wallet go in order", async () => {
    const before = await stack.balanceOf(dead)
    const result = await stack.ask(
      execute(...Array.from({ length: 256 }, (_, n) => transfer("one", n % 64 === 0 ? "1" : "0")))
    )
    expect(result.status).toBe(1)
    expect((await stack.balanceOf(dead)) - before).toBe(4n)
  })

  it("an estimate while the chain is dearer than the operator allows is status 0", async () => {
    await stack.provider.send("anvil_setNextBlockBaseFeePerGas", ["0x174876e80000"])
    await stack.provider.send("evm_mine", [])
    expect(await estimate(transfer("one", "0"))).toMatchObject({ status: 0, gas: 0, userOps: [] })
    await stack.provider.send("anvil_setNextBlockBaseFeePerGas", ["0x3b9aca00"])
    await stack.provider.send("evm_mine", [])
  })

  it("an estimate of which nothing came holds no nonce keys", async () => {
    await stack.create("tried")
    const tries = Array.from({ length: 3 }, () => transfer("tried", "1"))
    expect(await estimate(...tries)).toMatchObject({ status: 0, userOps: [] })
    const [op] = (await estimate(transfer("tried", "0"))).userOps
    const { nonce } = Either.getOrThrow(UserOperation.decode("v0.7", Hex.unsafe(op?.encodedUserOp ?? "")))
    expect(Nonce.keyOf(nonce)).toBe(Nonce.handedOutKeys.from)
  })

  it("an op that went down with a copied neighbour goes again by itself, and lands once", async () => {
    const [a] = (await estimate(transfer("one", "1"))).userOps
    const [b] = (await estimate(transfer("one", "2"))).userOps
    if (a === undefined || b === undefined) throw new Error("two ops were expected")
    const before = await stack.balanceOf(dead)
    await stack.provider.send("evm_setAutomine", [false])
    const sending = stack.ask(post(signed(a), signed(b)))
    await expect.poll(async () => (await stack.provider.send("txpool_status", [])).pending).toBe("0x1")
    await copy(signed(a), { maxPriorityFeePerGas: 50n * 10n ** 9n, maxFeePerGas: 100n * 10n ** 9n })
    await stack.provider.send("evm_mine", [])
    await stack.provider.send("evm_setAutomine", [true])
    const { returnData, status } = await sending
    expect(status).toBe(1)
    expect(returnData[0]?.["0"]?.txHash).not.toBe(returnData[1]?.["1"]?.txHash)
    expect((await stack.ask(post(signed(b)))).returnData[0]?.["0"]?.success).toBe(true)
    expect((await stack.balanceOf(dead)) - before).toBe(3n)
  })
})
