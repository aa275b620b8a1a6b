import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import { type HDNodeWallet, ZeroAddress } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Version } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Sponsorship from "../../../src/domain/erc4337/paymaster/Sponsorship.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Conditions from "../../../src/domain/signature/Conditions.js"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { startStandIn } from "../../support/bundler/StandIn.js"
import * as Handed from "../../support/stack/Handed.js"
import { type Sponsored, sponsored } from "../../support/stack/Sponsored.js"
import { Address, keyOf, type Stack, startStack } from "../../support/stack/Stack.js"
import { use } from "../../support/Use.js"
import { npmInterface } from "../lens/Abis.js"

const nobody = { validUntil: 0, validAfter: 0, bundler: Address.zero }

/** The owner's proof over only the userOpHash, and the sponsor's tail behind it. */
const copied = (op: UserOperation.UserOperation, hash: Hex.Bytes32, tail: Hex.Hex, owner: HDNodeWallet) => {
  const proof = Hex.unsafe(owner.signingKey.sign(hash).serialized)
  return { ...op, signature: Sponsorship.append(Conditions.encodeSignature(nobody, proof), tail) }
}

/** The EntryPoint's refusal of this EOA's bundle; null: it accepts it. */
const verdict = async (
  stack: Stack,
  version: Version,
  op: UserOperation.UserOperation,
  from: string
): Promise<string | null> => {
  try {
    const data = UserOperation.handleOps(version, [op], Address.unsafe(from))
    await stack.provider.call({ from, to: entryPoints[version], data, gasLimit: 5_000_000n })
    return null
  } catch (cause) {
    const { data } = cause as { readonly data: string }
    return String(npmInterface(version, "EntryPoint").parseError(data)?.args[1])
  }
}

describe.each(entryPointVersions)("a copy of a pending sponsorship on EntryPoint %s", (version) => {
  let stack: Stack
  let sponsor: Sponsored
  beforeAll(async () => {
    stack = await startStack({ entryPoint: version })
    sponsor = await sponsored(stack)
    await stack.create("tenant")
    await stack.mint(stack.predict("tenant"), 10n)
  })
  afterAll(() => stack.stop())

  /** The sponsor's tail, taken from the pending bundle. */
  const pendingTail = async (eoa: string): Promise<Hex.Hex> => {
    for (;;) {
      const { pending } = await stack.provider.send("txpool_content", [])
      const own = Object.entries<Record<string, { input: string }>>(pending).find(
        ([address]) => address.toLowerCase() === eoa.toLowerCase()
      )
      const [sent] = own === undefined ? [] : Object.values(own[1])
      if (sent !== undefined) {
        const [ops] = npmInterface(version, "EntryPoint").decodeFunctionData("handleOps", sent.input)
        const { signature } = ops[0]
        return Hex.unsafe(`0x${String(signature).slice(-2 * Sponsorship.tail)}`)
      }
      await new Promise((resolve) => setTimeout(resolve, 20))
    }
  }

  it("lands nothing for its owner and earns nothing, and the service's bundle lands", async () => {
    const handed = Handed.make(stack, Address.unsafe(entryPoints[version]))
    const to = `0x${"7e".repeat(20)}`
    const [op] = await handed.out([handed.transfer("tenant", to)], { paymaster: stack.suite.paymaster })
    if (op === undefined) throw new Error("an op was expected")
    const service = keyOf(2).address
    expect(op.bundler).toBe(service)
    const thief = keyOf(8).connect(stack.provider)
    const [deposit, earned] = [await sponsor.deposit(), await stack.provider.getBalance(service)]

    await stack.provider.send("evm_setAutomine", [false])
    const answer = stack.runtime.runFork(handed.post(op, { over: op.signingHash }))
    const tail = await pendingTail(service)
    const theft = copied(op.op, op.userOpHash, tail, stack.signer)
    expect(await verdict(stack, version, theft, thief.address)).toBe("AA34 signature error")
    // Even in front of the service's bundle, in the same block.
    const before = await stack.provider.getBalance(thief.address)
    const sent = await thief.sendTransaction({
      to: entryPoints[version],
      data: UserOperation.handleOps(version, [theft], Address.unsafe(thief.address)),
      gasLimit: 2_000_000n,
      maxFeePerGas: 400_000_000_000n,
      maxPriorityFeePerGas: 300_000_000_000n
    })
    await stack.provider.send("evm_mine", [])
    await stack.provider.send("evm_setAutomine", [true])
    const receipt = await stack.provider.getTransactionReceipt(sent.hash)
    expect(receipt).toMatchObject({ status: 0, index: 0, logs: [] })
    expect(await stack.provider.getBalance(thief.address)).toBeLessThan(before)

    const landed = await Effect.runPromise(Fiber.join(answer))
    expect(landed.status).toBe(1)
    const mined = await stack.provider.getTransactionReceipt(landed.txHash)
    expect(mined).toMatchObject({ from: service, blockNumber: receipt?.blockNumber, index: 1 })
    expect(await stack.balanceOf(to)).toBe(1n)
    expect(await sponsor.deposit()).toBeLessThan(deposit)
    expect(await stack.provider.getBalance(service)).toBeGreaterThanOrEqual(earned)
  })
})

describe("a sponsorship where a remote bundler submits", () => {
  const bundler = use(startStandIn)
  let stack: Stack
  let sponsor: Sponsored
  beforeAll(async () => {
    stack = await startStack({ profile: { remoteBundler: Redacted.make(bundler.url) } })
    bundler.attach(stack.provider, keyOf(9))
    sponsor = await sponsored(stack)
    await stack.create("remote")
    await stack.mint(stack.predict("remote"), 10n)
  })
  afterAll(async () => {
    await stack.stop()
  })

  const version = "v0.7"

  it("names no submitter, and lands from the bundler's own EOA", async () => {
    const handed = Handed.make(stack)
    const to = `0x${"7f".repeat(20)}`
    const [op] = await handed.out([handed.transfer("remote", to)], { paymaster: stack.suite.paymaster })
    if (op === undefined) throw new Error("an op was expected")
    expect(op.bundler).toBe(ZeroAddress)
    expect(op.op.paymasterAndData).toMatch(/01$/)
    expect(Sponsorship.read(version, op.op.paymasterAndData)).toMatchObject({ success: { unbound: true } })
    const deposit = await sponsor.deposit()
    const answer = await stack.ask(handed.post(op, { over: op.userOpHash }))
    expect(answer.status).toBe(1)
    const receipt = await stack.provider.getTransactionReceipt(answer.txHash)
    expect(receipt?.from).toBe(keyOf(9).address)
    expect(await stack.balanceOf(to)).toBe(1n)
    expect(await sponsor.deposit()).toBeLessThan(deposit)
  })

  it("is refused by the service's own EOA, and the bound form by the bundler's profile", async () => {
    const settings = { paymaster: stack.suite.paymaster }
    const own = stack.begin({ profile: { remoteBundler: null } })
    const local: Stack = {
      ...stack,
      runtime: own,
      ask: (effect) => own.runPromise(effect),
      refused: (effect) => own.runPromise(Effect.flip(effect))
    }
    try {
      const there = Handed.make(stack)
      const here = Handed.make(local)
      const [unbound] = await there.out([there.transfer("remote", `0x${"7a".repeat(20)}`)], settings)
      const [bound] = await here.out([here.transfer("remote", `0x${"7b".repeat(20)}`)], settings)
      if (unbound === undefined || bound === undefined) throw new Error("two ops were expected")
      const before = await sponsor.deposit()
      expect(await local.refused(here.post(unbound))).toMatchObject({
        code: "not_sponsored",
        message: expect.stringContaining("names no submitter")
      })
      expect(await stack.refused(there.post(bound))).toMatchObject({
        code: "not_sponsored",
        message: expect.stringContaining("names its submitter")
      })
      expect(await sponsor.deposit()).toBe(before)
    } finally {
      await own.dispose()
    }
  })
})
