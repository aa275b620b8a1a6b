import { concat, type HDNodeWallet } from "ethers"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type EntryPointVersion, entryPointVersions } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { at, type Chain, devKey, startChain } from "../../support/suite/Chain.js"
import {
  type AssertionOptions,
  assertion,
  configOf,
  ecdsa,
  indexIn,
  newPasskey,
  type Passkey,
  passkeyProof,
  personal
} from "../../support/suite/Keys.js"
import { type Config, mixedProof, opSignature, unbound } from "../../support/suite/Layouts.js"
import { createWallet, execute, handleOps, hashOf, newOp, nonceOf, refusal } from "../../support/suite/Ops.js"

let chain: Chain
beforeAll(async () => {
  chain = await startChain()
})
afterAll(() => chain.stop())

const [a, b, c] = [devKey(20), devKey(21), devKey(22)] as const
const [p, q] = [newPasskey(), newPasskey()] as const
const foreign = newPasskey()
const hash = `0x${"5a".repeat(32)}`

/** What the deployed validator says of a proof; "malformed" when it reverts. */
const verify = async (config: Config, proof: string, over = hash): Promise<boolean | "malformed"> => {
  try {
    return await at("CustodyValidator", chain.suite.validator, chain)
      .getFunction("verify")
      .staticCall(config, over, proof)
  } catch {
    return "malformed"
  }
}

/** Signs as each of these, and puts the parts into the shorter form that holds them. */
const proofOf = (config: Config, over: string, signers: ReadonlyArray<HDNodeWallet | Passkey>): string => {
  const parts = concat(signers.flatMap((signer) => ("address" in signer ? [ecdsa(over, signer)] : [])))
  const assertions = signers.flatMap((signer) =>
    "address" in signer ? [] : [assertion(over, signer, { index: Math.max(0, indexIn(config, signer)) })]
  )
  return assertions.length === 0 ? parts : mixedProof(parts, assertions)
}

const custodies = {
  ECDSA: configOf(1, [a]),
  ECDSA_PASSKEY: configOf(2, [a], [p, q]),
  MULTISIG: configOf(3, [a, b, c], [], 2),
  MULTISIG_PASSKEY: configOf(4, [a, b], [p, q], 3),
  PASSKEY: configOf(5, [], [p, q])
}

const enough: ReadonlyArray<readonly [keyof typeof custodies, ReadonlyArray<HDNodeWallet | Passkey>]> = [
  ["ECDSA", [a]],
  ["ECDSA_PASSKEY", [a]],
  ["ECDSA_PASSKEY", [p]],
  ["ECDSA_PASSKEY", [q]],
  ["ECDSA_PASSKEY", [a, p]],
  ["MULTISIG", [a, b]],
  ["MULTISIG", [c, a]],
  ["MULTISIG", [b, c, a]],
  ["MULTISIG_PASSKEY", [a, b, p]],
  ["MULTISIG_PASSKEY", [b, q, p]],
  ["MULTISIG_PASSKEY", [a, b, p, q]],
  ["PASSKEY", [p]],
  ["PASSKEY", [q]],
  ["PASSKEY", [q, p]]
]

const tooLittle: ReadonlyArray<readonly [keyof typeof custodies, ReadonlyArray<HDNodeWallet | Passkey>]> = [
  ["ECDSA", [b]],
  ["ECDSA", [p]],
  ["ECDSA_PASSKEY", [b]],
  ["ECDSA_PASSKEY", [foreign]],
  ["ECDSA_PASSKEY", [a, foreign]],
  ["ECDSA_PASSKEY", [p, b]],
  ["MULTISIG", [a]],
  ["MULTISIG", [a, a]],
  ["MULTISIG", [a, b, b]],
  ["MULTISIG", [a, devKey(23)]],
  ["MULTISIG", [a, b, devKey(23)]],
  ["MULTISIG", [a, p]],
  ["MULTISIG_PASSKEY", [a, b]],
  ["MULTISIG_PASSKEY", [p, q]],
  ["MULTISIG_PASSKEY", [a, a, p]],
  ["MULTISIG_PASSKEY", [a, p, p]],
  ["MULTISIG_PASSKEY", [a, b, foreign]],
  ["MULTISIG_PASSKEY", [a, b, p, foreign]],
  ["PASSKEY", [a]],
  ["PASSKEY", [foreign]],
  ["PASSKEY", [p, p]],
  ["PASSKEY", [p, a]]
]

describe.each(entryPointVersions)("on EntryPoint %s", (version: EntryPointVersion) => {
  const addresses: Record<string, string> = {}
  beforeAll(async () => {
    for (const [name, config] of Object.entries(custodies)) {
      const wallet = await createWallet(chain, version, `${name} ${version}`, config)
      addresses[name] = await wallet.getAddress()
    }
  })

  const prepare = async (name: keyof typeof custodies) => {
    const sender = addresses[name] ?? ""
    const op = newOp(sender, {
      nonce: await nonceOf(chain, version, sender),
      callData: execute(chain.stranger.address, "0x", 1n)
    })
    return { op, digest: await hashOf(chain, version, op) }
  }

  test("operations are executed when enough validators of their custody have signed", async () => {
    for (const [name, signers] of enough) {
      const { op, digest } = await prepare(name)
      const signature = opSignature(unbound, proofOf(custodies[name], digest, signers))
      const { outcomes } = await handleOps(chain, version, [{ ...op, signature }])
      expect(outcomes, name).toEqual([{ sender: op.sender, success: true, reason: "0x" }])
    }
  })

  test("operations are refused when too few, others, or the same ones twice have signed", async () => {
    for (const [name, signers] of tooLittle) {
      const { op, digest } = await prepare(name)
      const signature = opSignature(unbound, proofOf(custodies[name], digest, signers))
      expect(await refusal(chain, version, [{ ...op, signature }]), name).toBe("AA24 signature error")
    }
  })

  test("a proof of no known form reverts the validation", async () => {
    for (const name of ["ECDSA_PASSKEY", "MULTISIG", "MULTISIG_PASSKEY", "PASSKEY"] as const) {
      const { op } = await prepare(name)
      for (const proof of ["0x", `0x${"ff".repeat(63)}`, `0x${"ff".repeat(96)}`])
        expect(await refusal(chain, version, [{ ...op, signature: opSignature(unbound, proof) }])).toMatch(
          /^AA23/
        )
    }
  })
})

describe("the validator", () => {
  test("decides as the wallets do", async () => {
    for (const [name, signers] of enough)
      expect(await verify(custodies[name], proofOf(custodies[name], hash, signers)), name).toBe(true)
    for (const [name, signers] of tooLittle)
      expect(await verify(custodies[name], proofOf(custodies[name], hash, signers)), name).toBe(false)
  })

  test("takes ECDSA parts in either form, over either hash, in any order", async () => {
    const config = custodies.MULTISIG
    for (const parts of [
      [ecdsa(hash, a), personal(hash, b)],
      [personal(hash, c), ecdsa(hash, b)],
      [personal(hash, c), personal(hash, a)]
    ]) {
      expect(await verify(config, concat(parts))).toBe(true)
      expect(await verify(config, mixedProof(concat(parts), []))).toBe(true)
    }
    expect(await verify(config, concat([ecdsa(hash, a), personal(hash, a)]))).toBe(false)
    const two = ecdsa(hash, a, b)
    for (const parts of [two.slice(0, -2), `${two}00`, two.slice(0, 2 + 64 * 2)])
      expect(await verify(config, mixedProof(parts, []))).toBe(false)
  })

  test("takes sixteen owners and not seventeen parts", async () => {
    const owners = Array.from({ length: 16 }, (_, i) => devKey(30 + i))
    const config = configOf(3, owners, [], 16)
    expect(await verify(config, ecdsa(hash, ...owners))).toBe(true)
    expect(await verify(config, ecdsa(hash, ...owners.slice(1)))).toBe(false)
    expect(await verify(config, ecdsa(hash, ...owners.slice(1), ...owners.slice(1, 2)))).toBe(false)
    const seventeen = ecdsa(hash, ...owners, ...owners.slice(0, 1))
    expect(await verify(config, seventeen)).toBe("malformed")
    expect(await verify(config, mixedProof(seventeen, []))).toBe(false)
  })

  test("takes sixteen passkeys", async () => {
    const passkeys = Array.from({ length: 16 }, newPasskey)
    const config = configOf(4, [a], passkeys, 16)
    const proofs = passkeys.map((key) => assertion(hash, key, { index: indexIn(config, key) }))
    expect(await verify(config, mixedProof("0x", proofs))).toBe(true)
    expect(await verify(config, mixedProof(ecdsa(hash, a), proofs.slice(1)))).toBe(true)
    expect(await verify(config, mixedProof("0x", proofs.slice(1)))).toBe(false)
    expect(await verify(config, mixedProof("0x", [...proofs.slice(1), ...proofs.slice(1, 2)]))).toBe(false)
  })

  test("takes an assertion by the named passkey only, verified user, low s, right type and challenge", async () => {
    const config = custodies.PASSKEY
    const index = indexIn(config, p)
    const by = (options: AssertionOptions = {}) => passkeyProof(hash, p, { index, ...options })
    expect(await verify(config, by())).toBe(true)
    expect(await verify(config, by({ flags: 0x1d }))).toBe(true)
    const wrong = [
      by({ highS: true }),
      by({ flags: 0x01 }),
      by({ flags: 0x04 }),
      by({ flags: 0x15 }),
      by({ type: "webauthn.create" }),
      by({ index: 1 - index }),
      by({ index: 2 }),
      passkeyProof(`0x${"5b".repeat(32)}`, p, { index })
    ]
    for (const proof of wrong) expect(await verify(config, proof)).toBe(false)
  })

  test("takes no assertion of which a byte was changed", async () => {
    const config = custodies.PASSKEY
    const good = assertion(hash, p, { index: indexIn(config, p) })
    const changed = [
      { r: `0x${"00".repeat(32)}` },
      { s: `0x${"00".repeat(32)}` },
      { r: `0x${"ff".repeat(32)}` },
      { challengeIndex: good.auth.challengeIndex + 1 },
      { challengeIndex: 2 ** 40 },
      { typeIndex: good.auth.typeIndex + 1 },
      { typeIndex: 2 ** 40 },
      { authenticatorData: `${good.auth.authenticatorData}00` },
      { authenticatorData: "0x" },
      { authenticatorData: good.auth.authenticatorData.slice(0, 2 + 36 * 2) },
      { clientDataJSON: good.auth.clientDataJSON.replace("wallet", "wallit") },
      { clientDataJSON: "" }
    ]
    for (const change of changed)
      expect(await verify(config, mixedProof("0x", [{ ...good, auth: { ...good.auth, ...change } }]))).toBe(
        false
      )
  })

  test("never says yes to bytes that are no proof", async () => {
    const good = mixedProof(ecdsa(hash, a, b), [
      assertion(hash, p, { index: indexIn(custodies.MULTISIG_PASSKEY, p) })
    ])
    expect(await verify(custodies.MULTISIG_PASSKEY, good)).toBe(true)
    for (let cut = 2; cut < good.length - 66; cut += 62)
      expect(await verify(custodies.MULTISIG_PASSKEY, good.slice(0, cut))).not.toBe(true)
    for (let word = 0; word < 20; word++)
      for (const value of ["00".repeat(32), "ff".repeat(32), `${"00".repeat(31)}20`]) {
        const at = 2 + word * 64
        if (good.slice(at, at + 64) === value) continue
        const bent = good.slice(0, at) + value + good.slice(at + 64)
        expect(await verify(custodies.MULTISIG_PASSKEY, bent), `word ${word}`).not.toBe(true)
      }
  })

  test("counts nobody for a configuration without a threshold", async () => {
    const none = { custody: 0, threshold: 0, owners: [], passkeys: [] }
    expect(await verify(none, mixedProof("0x", []))).toBe(false)
    expect(await verify({ ...custodies.ECDSA, threshold: 0 }, ecdsa(hash, a))).toBe(false)
    const zeroOwner = { custody: 1, threshold: 1, owners: [`0x${"00".repeat(20)}`], passkeys: [] }
    expect(await verify(zeroOwner, `0x${"00".repeat(65)}`)).toBe(false)
  })
})
