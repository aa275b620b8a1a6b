import { AbiCoder, concat, Interface, toBeHex } from "ethers"
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import {
  type EntryPointVersion,
  entryPoints,
  entryPointVersions
} from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { fundPaymaster } from "../../../src/hosts/cli/deploy/Suite.js"
import { forwarderCode, revertOf, send } from "../../support/suite/Calls.js"
import { at, type Chain, create, devKey, startChain } from "../../support/suite/Chain.js"
import {
  assertion,
  configOf,
  ecdsa,
  highS,
  indexIn,
  newPasskey,
  parityV,
  passkeyProof
} from "../../support/suite/Keys.js"
import { type Config, mixedProof, opSignature, unbound } from "../../support/suite/Layouts.js"
import {
  creationOp,
  execute,
  handleOps,
  hashOf,
  newOp,
  nonceOf,
  type Op,
  pack,
  predict,
  refusal,
  signOp
} from "../../support/suite/Ops.js"
import { sponsored, sponsorship, termsOf, withPaymaster } from "../../support/suite/Sponsor.js"
import vectors from "../../vectors/sponsorship.json" with { type: "json" }

const published = vectors.vectors

let chain: Chain
const abi = new Interface(artifact("SponsorPaymaster").abi)

beforeAll(async () => {
  chain = await startChain()
  await fundPaymaster(chain.stranger, chain.suite.paymaster, 10n ** 19n)
})
afterAll(() => chain.stop())

const [owner, second, third] = [devKey(20), devKey(21), devKey(22)] as const
const passkey = newPasskey()
const byOwner = (hash: string) => ecdsa(hash, owner)

/** A configuration of each custody, and who proves an op for it. */
const custodies: ReadonlyArray<readonly [string, Config, (hash: string) => string]> = (() => {
  const union = configOf(4, [owner, second, third], [passkey], 2)
  const mixed = (hash: string) =>
    mixedProof(ecdsa(hash, owner), [assertion(hash, passkey, { index: indexIn(union, passkey) })])
  const byPasskey = (hash: string) => passkeyProof(hash, passkey)
  return [
    ["ECDSA", configOf(1, [owner]), byOwner],
    ["ECDSA_PASSKEY by its owner", configOf(2, [owner], [passkey]), byOwner],
    ["ECDSA_PASSKEY by its passkey", configOf(2, [owner], [passkey]), byPasskey],
    ["MULTISIG", configOf(3, [owner, second, third], [], 2), (hash) => ecdsa(hash, owner, third)],
    ["MULTISIG_PASSKEY", union, mixed],
    ["PASSKEY", configOf(5, [], [passkey]), byPasskey]
  ]
})()

const deployerProof = (hash: string) => ecdsa(hash, chain.deployer)

/** A creation that the paymaster pays, signed by everybody. */
const sponsoredCreation = async (version: EntryPointVersion, salt: string, config: Config): Promise<Op> => {
  const creation = await creationOp(chain, version, salt, config)
  const op = withPaymaster(chain, version, { ...creation, signature: "0x" })
  return sponsored(chain, version, await signOp(chain, version, op, deployerProof))
}

const structOf = (version: EntryPointVersion): string =>
  version === "v0.6"
    ? "(address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)"
    : "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)"

describe.each(entryPointVersions)("the sponsor paymaster on EntryPoint %s", (version) => {
  test.each(custodies)(
    "pays for the creation and the operations of a wallet without money: %s",
    async (name, config, prove) => {
      const salt = `sponsored ${name} ${version}`
      const creation = await sponsoredCreation(version, salt, config)
      expect(await handleOps(chain, version, [creation])).toMatchObject({ outcomes: [{ success: true }] })
      expect(await chain.provider.getBalance(creation.sender)).toBe(0n)
      const op = withPaymaster(
        chain,
        version,
        newOp(creation.sender, {
          nonce: await nonceOf(chain, version, creation.sender),
          callData: execute(
            chain.suite.ledger,
            chain.ledger.interface.encodeFunctionData("record", [toBeHex(1, 32)])
          )
        })
      )
      const bound = { validUntil: (await chain.now()) + 600, validAfter: 1, bundler: chain.bundler.address }
      const signed = await signOp(chain, version, op, prove, bound)
      const before = await chain
        .entryPoint(version)
        .getFunction("balanceOf")
        .staticCall(chain.suite.paymaster)
      const landed = await handleOps(chain, version, [await sponsored(chain, version, signed)])
      expect(landed.outcomes).toMatchObject([{ success: true }])
      const after = await chain.entryPoint(version).getFunction("balanceOf").staticCall(chain.suite.paymaster)
      expect(after).toBeLessThan(before)
      expect(await chain.entryPoint(version).getFunction("balanceOf").staticCall(creation.sender)).toBe(0n)
    }
  )

  describe("refuses", () => {
    let wallet: string
    let draft: Op
    let signed: Op

    beforeAll(async () => {
      const creation = await sponsoredCreation(version, `refused ${version}`, configOf(1, [owner]))
      wallet = creation.sender
      await handleOps(chain, version, [creation])
    })
    beforeEach(async () => {
      draft = withPaymaster(
        chain,
        version,
        newOp(wallet, {
          nonce: await nonceOf(chain, version, wallet),
          callData: execute(chain.stranger.address, "0x")
        })
      )
      signed = await signOp(chain, version, draft, byOwner)
    })

    const verdict = (op: Op, from = chain.bundler) => refusal(chain, version, [op], from)
    const withTail = (tail: string): Op => ({ ...signed, signature: concat([signed.signature, tail]) })

    test("every submitter but the one that the sponsor has named, though the owner names none", async () => {
      const op = await sponsored(chain, version, signed)
      expect(await verdict(op)).toBeUndefined()
      expect(await verdict(op, chain.stranger)).toBe("AA34 signature error")
    })

    test("nobody as the submitter of an unbound sponsorship, which is of no other form", async () => {
      const bundler = unbound.bundler
      const open = withPaymaster(chain, version, draft, { unbound: true })
      const op = await signOp(chain, version, open, byOwner)
      const tail = await sponsorship(chain, version, open, chain.sponsor, { bundler })
      const whole = { ...op, signature: concat([op.signature, tail]) }
      expect(await verdict(whole)).toBeUndefined()
      expect(await verdict(whole, chain.stranger)).toBeUndefined()
      // A submitter is named in a form that names none, and the other way round.
      const named = await sponsorship(chain, version, open)
      expect(await verdict({ ...op, signature: concat([op.signature, named]) })).toBe("AA34 signature error")
      const unnamed = await sponsorship(chain, version, draft, chain.sponsor, { bundler })
      expect(await verdict(withTail(unnamed))).toBe("AA34 signature error")
      // The byte is taken away or put there: another operation, though its owner signs it again.
      for (const [paymasterAndData, signature] of [
        [draft.paymasterAndData, tail],
        [open.paymasterAndData, unnamed]
      ] as const) {
        const again = await signOp(chain, version, { ...draft, paymasterAndData }, byOwner)
        const turned = { ...again, signature: concat([again.signature, signature]) }
        expect(await verdict(turned, chain.stranger)).toBe("AA34 signature error")
      }
    })

    test("to read tx.origin when no submitter is named", async () => {
      const origins = async (op: Op): Promise<number> => {
        const data = abi.encodeFunctionData(`validatePaymasterUserOp(${structOf(version)},bytes32,uint256)`, [
          pack(version, op),
          await hashOf(chain, version, op),
          0n
        ])
        const to = chain.suite.paymaster
        const { structLogs } = await chain.provider.send("debug_traceCall", [
          { from: entryPoints[version], to, data },
          "latest",
          {}
        ])
        const opcodes = structLogs.map((step: { readonly op: string }) => step.op)
        expect(opcodes).toContain("RETURN")
        return opcodes.filter((opcode: string) => opcode === "ORIGIN").length
      }
      const open = withPaymaster(chain, version, draft, { unbound: true })
      const tail = await sponsorship(chain, version, open, chain.sponsor, { bundler: unbound.bundler })
      expect(await origins({ ...open, signature: tail })).toBe(0)
      expect(await origins(withTail(await sponsorship(chain, version, draft)))).toBe(1)
    })

    test("a missing, cut, foreign, malleated or misread signature with AA34, and never by a revert", async () => {
      const good = await sponsorship(chain, version, draft)
      const personal = chain.sponsor.signingKey
      const tails = [
        "0x",
        good.slice(0, -2),
        `${good}00`,
        await sponsorship(chain, version, draft, chain.stranger),
        await sponsorship(chain, version, draft, owner),
        await sponsorship(chain, version, draft, chain.factoryOwner),
        highS(good),
        parityV(good),
        `0x${"00".repeat(65)}`,
        `0x${"00".repeat(64)}1b`,
        `0x${"ff".repeat(65)}`,
        `${good.slice(0, 130)}1d`,
        // Over the hash itself, as the wallet's owner signs, and not over the sponsor's digest.
        personal.sign(await hashOf(chain, version, draft)).serialized
      ]
      expect(await verdict(withTail(good))).toBeUndefined()
      for (const tail of tails) expect(await verdict(withTail(tail)), tail).toBe("AA34 signature error")
    })

    test("a signature for another chain, paymaster or EntryPoint", async () => {
      const other = entryPointVersions[(entryPointVersions.indexOf(version) + 1) % 3] ?? version
      const elsewhere = [
        await sponsorship(chain, version, draft, chain.sponsor, { chainId: 1n }),
        await sponsorship(chain, version, draft, chain.sponsor, { paymaster: chain.suite.factory }),
        await sponsorship(chain, other, withPaymaster(chain, other, draft))
      ]
      for (const tail of elsewhere) expect(await verdict(withTail(tail))).toBe("AA34 signature error")
    })

    test("a signature for another operation of the wallet, and one that was used", async () => {
      const tail = await sponsorship(chain, version, draft)
      const later = { ...draft, nonce: 1n << 64n }
      const another = await signOp(chain, version, later, byOwner)
      expect(await verdict({ ...another, signature: concat([another.signature, tail]) })).toBe(
        "AA34 signature error"
      )
      const op = withTail(tail)
      await handleOps(chain, version, [op])
      expect(await verdict(op)).toBe("AA25 invalid account nonce")
    })

    test("an operation of which any field was changed afterwards, though its owner signs it again", async () => {
      const tail = await sponsorship(chain, version, draft)
      const terms = termsOf(chain, version)
      const limits = terms.limits && { ...terms.limits, verificationGasLimit: 60_001n }
      const changes: ReadonlyArray<Partial<Op>> = [
        { callData: execute(chain.stranger.address, "0x01") },
        { callGasLimit: draft.callGasLimit + 1n },
        { verificationGasLimit: draft.verificationGasLimit + 1n },
        { preVerificationGas: draft.preVerificationGas + 1n },
        { maxFeePerGas: draft.maxFeePerGas + 1n },
        { maxPriorityFeePerGas: draft.maxPriorityFeePerGas - 1n },
        withPaymaster(chain, version, draft, { validUntil: 2 ** 40 }),
        withPaymaster(chain, version, draft, { validAfter: 1 }),
        ...(limits === null ? [] : [withPaymaster(chain, version, draft, { limits })])
      ]
      for (const change of changes) {
        const again = await signOp(chain, version, { ...draft, ...change }, byOwner)
        expect(await verdict({ ...again, signature: concat([again.signature, tail]) })).toBe(
          "AA34 signature error"
        )
      }
    })

    test("an operation outside of its window with AA32", async () => {
      const now = await chain.now()
      const within = async (validUntil: number, validAfter: number) => {
        const op = withPaymaster(chain, version, draft, { validUntil, validAfter })
        return verdict(await sponsored(chain, version, await signOp(chain, version, op, byOwner)))
      }
      expect(await within(now + 600, now - 10)).toBeUndefined()
      expect(await within(now - 1, 0)).toBe("AA32 paymaster expired or not due")
      expect(await within(0, now + 600)).toBe("AA32 paymaster expired or not due")
      expect(await within(2 ** 48 - 1, 2 ** 48 - 1)).toBe("AA32 paymaster expired or not due")
    })

    test("paymasterAndData of another length", async () => {
      const bare = draft.paymasterAndData.slice(0, 2 + 2 * (version === "v0.6" ? 20 : 52))
      for (const paymasterAndData of [
        bare,
        `${draft.paymasterAndData}00`,
        `${draft.paymasterAndData}02`,
        `${draft.paymasterAndData}0100`,
        draft.paymasterAndData.slice(0, -2)
      ]) {
        const op = await signOp(chain, version, { ...draft, paymasterAndData }, byOwner)
        expect(await verdict(await sponsored(chain, version, op))).toBe("AA34 signature error")
      }
    })

    test("an operation that its owner has not signed, with AA24, whatever the sponsor says", async () => {
      const forged = {
        ...draft,
        signature: opSignature(unbound, ecdsa(await hashOf(chain, version, draft), second))
      }
      expect(await verdict(await sponsored(chain, version, forged))).toBe("AA24 signature error")
    })

    test("to lend its signature to the wallet: the last 65 bytes prove nothing of the owner's", async () => {
      // The sponsor's signature alone, in front of and behind an empty proof.
      const tail = await sponsorship(chain, version, draft)
      for (const proof of ["0x", tail]) {
        const op = { ...draft, signature: concat([opSignature(unbound, proof), tail]) }
        expect(await verdict(op)).toMatch(/^AA2[34] /)
      }
    })

    test("an operation that its deposit does not cover, with AA31", async () => {
      const poor = await create(
        "SponsorPaymaster",
        [chain.sponsor.address, chain.factoryOwner.address, ...Object.values(entryPoints)],
        chain.stranger
      )
      const paymaster = await poor.getAddress()
      const op = await signOp(chain, version, withPaymaster(chain, version, draft, { paymaster }), byOwner)
      const tail = await sponsorship(chain, version, op, chain.sponsor, { paymaster })
      const whole = { ...op, signature: concat([op.signature, tail]) }
      expect(await verdict(whole)).toBe("AA31 paymaster deposit too low")
      await fundPaymaster(chain.stranger, paymaster, 10n ** 18n)
      expect(await verdict(whole)).toBeUndefined()
    })

    test("callers that are not the EntryPoint of the version", async () => {
      const data = abi.encodeFunctionData(`validatePaymasterUserOp(${structOf(version)},bytes32,uint256)`, [
        pack(version, await sponsored(chain, version, signed)),
        await hashOf(chain, version, draft),
        0n
      ])
      const to = chain.suite.paymaster
      const accepted = version === "v0.6" ? ["v0.6"] : ["v0.7", "v0.8"]
      for (const each of entryPointVersions)
        expect(await revertOf(chain, { to, data, from: entryPoints[each] }, abi)).toBe(
          accepted.includes(each) ? "none" : `UnknownEntryPoint(${entryPoints[each]})`
        )
      expect(await revertOf(chain, { to, data, from: chain.sponsor.address }, abi)).toBe(
        `UnknownEntryPoint(${chain.sponsor.address})`
      )
    })
  })
})

test("the published vectors are what the sponsor paymaster verifies", async () => {
  const [
    {
      sponsor = "",
      terms: { paymaster }
    } = { terms: { paymaster: "" } }
  ] = published
  const made = await create(
    "SponsorPaymaster",
    [sponsor, chain.factoryOwner.address, ...Object.values(entryPoints)],
    chain.stranger
  )
  const from = await made.getAddress()
  await chain.provider.send("anvil_setCode", [paymaster, await chain.provider.getCode(from)])
  for (let slot = 0; slot < 8; slot += 1)
    await chain.provider.send("anvil_setStorageAt", [
      paymaster,
      toBeHex(slot, 32),
      await chain.provider.getStorage(from, slot)
    ])
  const verdictOf = async (each: (typeof published)[number], signature: string): Promise<bigint> => {
    const version = each.version as EntryPointVersion
    const op = newOp(chain.stranger.address, { paymasterAndData: each.paymasterAndData, signature })
    const data = abi.encodeFunctionData(`validatePaymasterUserOp(${structOf(version)},bytes32,uint256)`, [
      pack(version, op),
      each.userOpHash,
      0n
    ])
    // The EntryPoint forwards here: the paymaster sees it as the caller, and as tx.origin who is named.
    const to = entryPoints[version]
    const answer = await chain.provider.send("eth_call", [
      {
        from: each.terms.unbound ? chain.stranger.address : each.bundler,
        to,
        data: concat([paymaster, data])
      },
      "latest",
      { [to]: { code: forwarderCode } }
    ])
    const [context, validation] = AbiCoder.defaultAbiCoder().decode(["bytes", "uint256"], answer)
    expect(context).toBe("0x")
    return validation
  }
  const here = published.filter(({ chainId }) => BigInt(chainId) === chain.chainId)
  expect(here.map(({ terms, version }) => [version, terms.unbound])).toEqual(
    entryPointVersions.flatMap((version) => [
      [version, false],
      [version, true]
    ])
  )
  for (const each of here) {
    const window = (BigInt(each.terms.validAfter) << 208n) | (BigInt(each.terms.validUntil) << 160n)
    expect(await verdictOf(each, each.signature)).toBe(window)
    expect(await verdictOf(each, each.sponsorSignature)).toBe(window)
    expect(await verdictOf(each, each.walletSignature)).toBe(window | 1n)
  }
})

describe("the sponsor paymaster's owner", () => {
  const paymaster = () => at("SponsorPaymaster", chain.suite.paymaster, chain)
  const attempt = (from: string, method: string, args: ReadonlyArray<unknown>, value = 0n) =>
    revertOf(
      chain,
      { to: chain.suite.paymaster, data: abi.encodeFunctionData(method, args), from, value },
      abi
    )

  test("alone replaces the sponsor, takes out deposits and stakes", async () => {
    const v07 = entryPoints["v0.7"]
    const calls: ReadonlyArray<readonly [string, ReadonlyArray<unknown>]> = [
      ["setSponsor", [chain.stranger.address]],
      ["withdrawTo", [v07, chain.stranger.address, 1n]],
      ["addStake", [v07, 86_400]],
      ["unlockStake", [v07]],
      ["withdrawStake", [v07, chain.stranger.address]],
      ["transferOwnership", [chain.stranger.address]]
    ]
    for (const [method, args] of calls)
      for (const from of [chain.stranger.address, chain.sponsor.address, chain.deployer.address])
        expect(await attempt(from, method, args), method).toBe(`OwnableUnauthorizedAccount(${from})`)
  })

  test("changes in two steps, and cannot be renounced", async () => {
    const { factoryOwner, stranger } = chain
    const owner = () => paymaster().getFunction("owner").staticCall()
    for (const { address } of [factoryOwner, stranger])
      expect(await attempt(address, "renounceOwnership", [])).toBe("OwnershipCannotBeRenounced()")
    await send(factoryOwner, paymaster(), "transferOwnership", stranger.address)
    expect(await owner()).toBe(factoryOwner.address)
    expect(await attempt(stranger.address, "setSponsor", [stranger.address])).toBe(
      `OwnableUnauthorizedAccount(${stranger.address})`
    )
    expect(await attempt(chain.deployer.address, "acceptOwnership", [])).toBe(
      `OwnableUnauthorizedAccount(${chain.deployer.address})`
    )
    await send(stranger, paymaster(), "acceptOwnership")
    expect(await owner()).toBe(stranger.address)
    await send(stranger, paymaster(), "transferOwnership", factoryOwner.address)
    await send(factoryOwner, paymaster(), "acceptOwnership")
    expect(await owner()).toBe(factoryOwner.address)
  })

  test("cannot make the zero address sponsor, nor use an EntryPoint that is not accepted", async () => {
    const from = chain.factoryOwner.address
    expect(await attempt(from, "setSponsor", [`0x${"00".repeat(20)}`])).toBe("InvalidSponsor()")
    const unknown = chain.suite.factory
    for (const [method, args] of [
      ["deposit", [unknown]],
      ["withdrawTo", [unknown, from, 1n]],
      ["addStake", [unknown, 1]],
      ["unlockStake", [unknown]],
      ["withdrawStake", [unknown, from]]
    ] as const)
      expect(await attempt(from, method, args), method).toBe(`UnknownEntryPoint(${unknown})`)
    const args = [`0x${"00".repeat(20)}`, from, ...Object.values(entryPoints)]
    await expect(create("SponsorPaymaster", args, chain.stranger)).rejects.toThrow()
  })

  test("deposits, stakes and takes all of it out again", async () => {
    const { factoryOwner } = chain
    for (const version of entryPointVersions) {
      const entryPoint = entryPoints[version]
      const deposited = async () =>
        BigInt(await chain.entryPoint(version).getFunction("balanceOf").staticCall(chain.suite.paymaster))
      const before = await deposited()
      await send(factoryOwner, paymaster(), "withdrawTo", entryPoint, devKey(40).address, 7n)
      expect(await deposited()).toBe(before - 7n)
      const owned = paymaster().connect(factoryOwner)
      await (await owned.getFunction("deposit").send(entryPoint, { value: 7n })).wait()
      expect(await deposited()).toBe(before)
      await (await owned.getFunction("addStake").send(entryPoint, 1, { value: 5n })).wait()
      await send(factoryOwner, paymaster(), "unlockStake", entryPoint)
      await chain.provider.send("evm_increaseTime", [2])
      await chain.provider.send("evm_mine", [])
      const to = devKey(41).address
      const had = await chain.provider.getBalance(to)
      await send(factoryOwner, paymaster(), "withdrawStake", entryPoint, to)
      expect(await chain.provider.getBalance(to)).toBe(had + 5n)
    }
    expect(await chain.provider.getBalance(devKey(40).address)).toBe(21n)
  })

  test("rotates the sponsor: what the previous one has signed is void at once", async () => {
    const version = "v0.7"
    const config = configOf(1, [owner])
    const creation = await creationOp(chain, version, "rotated sponsor", config)
    const op = withPaymaster(chain, version, { ...creation, signature: "0x" })
    const signed = await signOp(chain, version, op, deployerProof)
    const before = await sponsored(chain, version, signed)
    const next = devKey(42)
    expect(await refusal(chain, version, [before])).toBeUndefined()
    await send(chain.factoryOwner, paymaster(), "setSponsor", next.address)
    expect(await refusal(chain, version, [before])).toBe("AA34 signature error")
    const tail = await sponsorship(chain, version, op, next)
    const after = { ...signed, signature: concat([signed.signature, tail]) }
    expect(await refusal(chain, version, [after])).toBeUndefined()
    await send(chain.factoryOwner, paymaster(), "setSponsor", chain.sponsor.address)
    expect(await refusal(chain, version, [before])).toBeUndefined()
    expect(await chain.provider.getCode(await predict(chain, "rotated sponsor", 1))).toBe("0x")
  })
})
