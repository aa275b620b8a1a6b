import { AbiCoder, concat } from "ethers"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { entryPoints, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import {
  placeForwarder,
  revertData,
  revertOf,
  validateCall,
  validationData
} from "../../support/suite/Calls.js"
import { type Chain, devKey, startChain } from "../../support/suite/Chain.js"
import { configOf, ecdsa, highS, parityV, personal } from "../../support/suite/Keys.js"
import { type Conditions, opSignature, signingHash, unbound } from "../../support/suite/Layouts.js"
import {
  createWallet,
  execute,
  handleOps,
  hashOf,
  newOp,
  nonceOf,
  type Op,
  pack,
  refusal,
  signOp,
  walletAbi
} from "../../support/suite/Ops.js"

let chain: Chain
beforeAll(async () => {
  chain = await startChain()
})
afterAll(() => chain.stop())

const owner = devKey(20)
const byOwner = (hash: string) => ecdsa(hash, owner)

describe.each(entryPointVersions)("on EntryPoint %s", (version) => {
  let address: string
  let op: Op
  let hash: string
  let bound: Conditions

  beforeAll(async () => {
    address = await (
      await createWallet(chain, version, `validation ${version}`, configOf(1, [owner]))
    ).getAddress()
    await chain.fund(address, 10n ** 19n)
  })
  beforeEach(async () => {
    op = newOp(address, {
      nonce: await nonceOf(chain, version, address),
      callData: execute(chain.stranger.address, "0x", 1n)
    })
    hash = await hashOf(chain, version, op)
    bound = { validUntil: (await chain.now()) + 600, validAfter: 1, bundler: chain.bundler.address }
  })

  const withProof = (proof: string, conditions: Conditions = unbound): Op => ({
    ...op,
    signature: opSignature(conditions, proof)
  })
  const verdict = (signed: Op, from = chain.bundler) => refusal(chain, version, [signed], from)

  test("the owner's signature counts over the hash and over its EIP-191 form", async () => {
    expect(await verdict(withProof(byOwner(hash)))).toBeUndefined()
    expect(await verdict(withProof(personal(hash, owner)))).toBeUndefined()
    const landed = await handleOps(chain, version, [withProof(byOwner(hash))])
    expect(landed.outcomes).toEqual([{ sender: address, success: true, reason: "0x" }])
  })

  test("a signature by another key, over another hash, or malleated is wrong", async () => {
    const good = byOwner(hash)
    const bad = [
      ecdsa(hash, chain.stranger),
      ecdsa(hash, chain.deployer),
      byOwner(`0x${"11".repeat(32)}`),
      highS(good),
      parityV(good),
      highS(personal(hash, owner)),
      parityV(personal(hash, owner)),
      `0x${"00".repeat(65)}`,
      `0x${"00".repeat(64)}1b`,
      concat([good, good]),
      concat([good, ecdsa(hash, chain.stranger)])
    ]
    for (const proof of bad) expect(await verdict(withProof(proof))).toBe("AA24 signature error")
  })

  test("a signature that cannot be decoded reverts", async () => {
    const good = byOwner(hash)
    const words = (...each: ReadonlyArray<bigint | number>) =>
      AbiCoder.defaultAbiCoder().encode(
        each.map(() => "uint256"),
        each
      )
    const bad = [
      "0x",
      good,
      good.slice(0, -2),
      words(0, 0, 0),
      words(2n ** 48n, 0, 0, 128, 0),
      words(0, 2n ** 48n, 0, 128, 0),
      words(0, 0, 2n ** 160n, 128, 0),
      words(0, 0, 0, 2n ** 64n, 0),
      words(0, 0, 0, 2n ** 255n, 0),
      words(0, 0, 0, 128, 2n ** 64n),
      opSignature(unbound, "0x"),
      opSignature(unbound, good.slice(0, -2)),
      opSignature(unbound, words(2n ** 200n, 64))
    ]
    for (const signature of bad)
      expect(await verdict({ ...op, signature }), signature).toMatch(/^AA23 reverted/)
  })

  test("an operation holds within its window", async () => {
    const now = await chain.now()
    const sign = (conditions: Conditions) =>
      signOp(chain, version, op, byOwner, { ...conditions, bundler: chain.bundler.address })
    expect(await verdict(await sign(bound))).toBeUndefined()
    expect(await verdict(await sign({ ...bound, validUntil: 0 }))).toBeUndefined()
    expect(await verdict(await sign({ ...bound, validUntil: now - 1 }))).toBe("AA22 expired or not due")
    expect(await verdict(await sign({ ...bound, validAfter: now + 600 }))).toBe("AA22 expired or not due")
  })

  test("validation data carry the window where the EntryPoint looks for it", async () => {
    const from = { hash }
    const conditions = {
      validUntil: 0xaabbccddeeff,
      validAfter: 0x112233445566,
      bundler: `0x${"00".repeat(20)}`
    }
    const signed = withProof(byOwner(signingHash(hash, conditions)), conditions)
    const window = (0x112233445566n << 208n) | (0xaabbccddeeffn << 160n)
    expect(await validationData(chain, version, signed, from)).toBe(window)
    const wrong = withProof(byOwner(hash), conditions)
    expect(await validationData(chain, version, wrong, from)).toBe(window | 1n)
  })

  test("conditions cannot be taken off, put on, or changed", async () => {
    const proof = byOwner(signingHash(hash, bound))
    const changed = [
      unbound,
      { ...bound, validUntil: 0 },
      { ...bound, validUntil: bound.validUntil + 1 },
      { ...bound, validAfter: 0 },
      { ...bound, bundler: unbound.bundler }
    ]
    expect(await verdict(withProof(proof, bound))).toBeUndefined()
    for (const conditions of changed)
      expect(await verdict(withProof(proof, conditions))).toBe("AA24 signature error")
    expect(await verdict(withProof(byOwner(hash), bound))).toBe("AA24 signature error")
  })

  test("a bundle copied by another EOA is refused", async () => {
    const signed = withProof(byOwner(signingHash(hash, bound)), bound)
    expect(await verdict(signed)).toBeUndefined()
    expect(await verdict(signed, chain.stranger)).toBe("AA24 signature error")
    const rebound = { ...bound, bundler: chain.stranger.address }
    expect(await verdict(withProof(byOwner(signingHash(hash, bound)), rebound), chain.stranger)).toBe(
      "AA24 signature error"
    )
  })

  test("a bundle that another EOA submits from inside a contract is refused", async () => {
    const forwarder = "0x00000000000000000000000000000000000f0f0f"
    await placeForwarder(chain, forwarder)
    const signed = withProof(byOwner(signingHash(hash, bound)), bound)
    const abi = chain.entryPoint(version).interface
    const nested = abi.encodeFunctionData("handleOps", [[pack(version, signed)], chain.stranger.address])
    const data = concat([entryPoints[version], nested])
    expect(await revertOf(chain, { from: chain.stranger.address, to: forwarder, data }, abi)).toBe(
      "FailedOp(0,AA24 signature error)"
    )
  })

  test("an operation that calls handleOps leaves the operations inside unspent", async () => {
    const inner = await signOp(chain, version, newOp(address, { nonce: 1n << 64n }), byOwner, bound)
    const nested = chain
      .entryPoint(version)
      .interface.encodeFunctionData("handleOps", [[pack(version, inner)], chain.stranger.address])
    const outer = { ...op, callData: execute(entryPoints[version], nested), callGasLimit: 1_000_000n }
    const { outcomes } = await handleOps(chain, version, [
      await signOp(chain, version, outer, byOwner, bound)
    ])
    expect(outcomes).toMatchObject([{ sender: address, success: false }])
    expect(await nonceOf(chain, version, address, 1n)).toBe(1n << 64n)
    expect(await verdict(inner)).toBeUndefined()
  })

  test("an operation lands once", async () => {
    const signed = await signOp(chain, version, op, byOwner)
    await handleOps(chain, version, [signed])
    expect(await verdict(signed)).toBe("AA25 invalid account nonce")
  })

  test("an operation of one wallet is worthless for another one of the same owner", async () => {
    const twin = await createWallet(chain, version, `twin ${version}`, configOf(1, [owner]))
    const sender = await twin.getAddress()
    await chain.fund(sender)
    const signed = await signOp(chain, version, { ...op, nonce: 1n << 64n }, byOwner)
    expect(await verdict(signed)).toBeUndefined()
    expect(await verdict({ ...signed, sender })).toBe("AA24 signature error")
  })

  test("an operation of one EntryPoint is worthless on the others", async () => {
    const nonce = 7n << 64n
    const signed = await signOp(chain, version, { ...op, nonce }, byOwner)
    expect(await verdict(signed)).toBeUndefined()
    for (const elsewhere of entryPointVersions.filter((each) => each !== version))
      expect(await refusal(chain, elsewhere, [signed])).toBe("AA24 signature error")
  })

  test("operations are validated by their own version's EntryPoint only", async () => {
    const signed = withProof(byOwner(hash))
    const data = validateCall(version, signed, hash)
    const packed = version === "v0.6" ? ["v0.6"] : ["v0.7", "v0.8"]
    for (const each of entryPointVersions) {
      const answer = await revertOf(chain, { from: entryPoints[each], to: address, data }, walletAbi)
      expect(answer).toBe(packed.includes(each) ? "none" : `AccountUnauthorized(${entryPoints[each]})`)
    }
    for (const from of [chain.stranger.address, owner.address, address])
      expect(await revertOf(chain, { from, to: address, data }, walletAbi)).toBe(
        `AccountUnauthorized(${from})`
      )
  })

  test("validation pays the missing funds and no more", async () => {
    const signed = withProof(byOwner(hash))
    const data = validateCall(version, signed, hash)
    const funded = `${data.slice(0, 138)}${12345n.toString(16).padStart(64, "0")}${data.slice(202)}`
    expect(await revertData(chain, { from: entryPoints[version], to: address, data: funded })).toBeUndefined()
    const before = await chain.entryPoint(version).getFunction("balanceOf").staticCall(address)
    await chain.provider.send("anvil_impersonateAccount", [entryPoints[version]])
    await chain.fund(entryPoints[version], 10n ** 20n)
    await chain.provider.send("eth_sendTransaction", [
      { from: entryPoints[version], to: address, data: funded, gas: "0x100000" }
    ])
    await chain.provider.send("anvil_stopImpersonatingAccount", [entryPoints[version]])
    const after = await chain.entryPoint(version).getFunction("balanceOf").staticCall(address)
    expect(after - before).toBe(12345n)
  })
})
