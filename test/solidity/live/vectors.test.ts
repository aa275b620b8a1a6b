import { readFileSync } from "node:fs"
import { AbiCoder, concat, Interface, keccak256, toBeHex } from "ethers"
import { beforeAll, describe, expect, test } from "vitest"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import {
  type EntryPointVersion,
  entryPoints,
  entryPointVersions
} from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { forwarderCode, revertOf, validateCall } from "../../support/suite/Calls.js"
import { at, create, devKey, startChain } from "../../support/suite/Chain.js"
import { assertionOf, configOf } from "../../support/suite/Keys.js"
import {
  type Conditions,
  type Config,
  configHash,
  create2Salt,
  type Deploy,
  deployDigest,
  ledgerKey,
  mixedProof,
  opSignature,
  type PasskeyProof,
  saltHash,
  signingHash,
  unbound,
  walletInitCode
} from "../../support/suite/Layouts.js"
import { createWallet, factoryAbi, newOp, pack } from "../../support/suite/Ops.js"
import { use } from "../../support/Use.js"

/** test/vectors, as ethers and the contracts judge them; test/domain/vectors.test.ts holds the domain against them. */
const vectors = <A>(name: string): ReadonlyArray<A> =>
  JSON.parse(readFileSync(new URL(`../../vectors/${name}.json`, import.meta.url), "utf8")).vectors

const chain = use(() => startChain(["--timestamp", "1799999000"]))

/** Puts a contract's code and storage at this address too. */
const place = async (to: string, from: string) => {
  await chain.provider.send("anvil_setCode", [to, await chain.provider.getCode(from)])
  for (const slot of [0, 1, 2, 3, 4, 5, 6, 7].map((number) => toBeHex(number, 32)))
    await chain.provider.send("anvil_setStorageAt", [to, slot, await chain.provider.getStorage(from, slot)])
}

/** A contract sees the EntryPoint as the caller, since the EntryPoint forwards here, and `from` as tx.origin. */
const validated = (version: EntryPointVersion, from: string, to: string, data: string): Promise<string> =>
  chain.provider.send("eth_call", [
    { from, to: entryPoints[version], data: concat([to, data]) },
    "latest",
    { [entryPoints[version]]: { code: forwarderCode } }
  ])

const window = ({ validAfter, validUntil }: { readonly validAfter: number; readonly validUntil: number }) =>
  (BigInt(validAfter) << 208n) | (BigInt(validUntil) << 160n)

const verify = (config: Config, hash: string, proof: string): Promise<boolean> =>
  at("CustodyValidator", chain.suite.validator, chain).getFunction("verify").staticCall(config, hash, proof)

test("configuration, signing and ledger hashes", () => {
  for (const each of vectors<{ config: Config; encoded: string; configHash: string }>("configHash"))
    expect([keccak256(each.encoded), configHash(each.config)]).toEqual([each.configHash, each.configHash])
  for (const each of vectors<{ userOpHash: string; conditions: Conditions; signingHash: string }>(
    "signingHash"
  ))
    expect(signingHash(each.userOpHash, each.conditions)).toBe(each.signingHash)
  for (const each of vectors<{ entryPoint: string; wallet: string; nonce: string; key: string }>("ledgerKey"))
    expect(ledgerKey(each.entryPoint, each.wallet, BigInt(each.nonce))).toBe(each.key)
})

interface AddressVector {
  readonly salt: string
  readonly custody: number
  readonly legacy: boolean
  readonly factory: string
  readonly beacon: string
  readonly saltHash: string
  readonly create2Salt: string
  readonly initCodeHash: string
  readonly wallet: string
}

/** Our factory at the vectors' address, on a beacon at the vectors' address. */
const factoryOf = async (factory: string, deployer: string) => {
  const [{ beacon } = { beacon: "" }] = vectors<AddressVector>("walletAddress")
  await place(beacon, chain.suite.beacon)
  const args = [beacon, deployer, deployer, ...Object.values(entryPoints)]
  await place(factory, await (await create("WalletFactory", args, chain.stranger)).getAddress())
  return at("WalletFactory", factory, chain)
}

test("wallet addresses, with their salts", async () => {
  const all = vectors<AddressVector>("walletAddress")
  const factory = await factoryOf(all[0]?.factory ?? "", chain.deployer.address)
  for (const vector of all) {
    const { custody, legacy, salt } = vector
    expect({
      saltHash: saltHash(salt),
      create2Salt: create2Salt(vector.saltHash, custody, legacy),
      initCodeHash: keccak256(walletInitCode(walletProxyCreationCode, vector.beacon)),
      wallet: await factory.getFunction("getAddress").staticCall(vector.saltHash, custody, legacy)
    }).toEqual({
      saltHash: vector.saltHash,
      create2Salt: vector.create2Salt,
      initCodeHash: vector.initCodeHash,
      wallet: vector.wallet
    })
  }
})

test("deployment digests, with the deployer's signature, which the factory takes only on its chain", async () => {
  for (const { authorization, chainId, config, deploy, deployer, digest, factory } of vectors<{
    readonly chainId: number
    readonly factory: string
    readonly deploy: Deploy
    readonly config: Config
    readonly digest: string
    readonly deployer: string
    readonly authorization: string
  }>("deployDigest")) {
    expect(deployDigest(BigInt(chainId), factory, deploy)).toBe(digest)
    await factoryOf(factory, deployer)
    const { bundler, custody, deadline, legacy, saltHash } = deploy
    const args = [saltHash, custody, legacy, config, deadline, authorization]
    const answer = await revertOf(
      chain,
      {
        from: bundler === unbound.bundler ? chain.stranger.address : bundler,
        to: factory,
        data: factoryAbi.encodeFunctionData("createWallet", args)
      },
      factoryAbi
    )
    expect(answer).toBe(BigInt(chainId) === chain.chainId ? "none" : "InvalidAuthorization()")
  }
})

test("op signatures", async () => {
  const [{ userOpHash } = { userOpHash: "" }] = vectors<{ userOpHash: string }>("signingHash")
  const wallet = await createWallet(chain, "v0.7", "vectors", configOf(1, [devKey(20)]))
  const sender = await wallet.getAddress()
  for (const { conditions, proof, signature } of vectors<{
    readonly conditions: Conditions
    readonly proof: string
    readonly signature: string
  }>("opSignature")) {
    expect(opSignature(conditions, proof)).toBe(signature)
    const data = validateCall("v0.7", newOp(sender, { signature }), userOpHash)
    expect(BigInt(await validated("v0.7", conditions.bundler, sender, data))).toBe(window(conditions))
  }
})

test("proofs", async () => {
  for (const { config, ecdsa, form, hash, passkeys, proof, valid } of vectors<{
    readonly form: "ecdsa" | "abi"
    readonly config: Config
    readonly hash: string
    readonly ecdsa?: string
    readonly passkeys?: ReadonlyArray<PasskeyProof>
    readonly proof: string
    readonly valid: boolean
  }>("proofs")) {
    expect(await verify(config, hash, proof)).toBe(valid)
    const size = (proof.length - 2) / 2
    expect(size <= 1040 && size % 65 === 0).toBe(form === "ecdsa")
    if (ecdsa !== undefined && passkeys !== undefined) expect(mixedProof(ecdsa, passkeys)).toBe(proof)
  }
})

describe("signatures, from what owners and browsers give to op.signature", () => {
  interface Vector {
    readonly about: string
    readonly config: Config
    readonly userOpHash: string
    readonly conditions: Conditions
    readonly signingHash: string
    readonly ecdsa: string
    readonly passkeys: ReadonlyArray<{
      readonly index: number
      readonly response: Readonly<Record<"signature" | "authenticatorData" | "clientDataJSON", string>>
    }>
    readonly proof: string
    readonly signature: string
    readonly valid: boolean
  }
  const all = vectors<Vector>("signatures")
  const bytes = (text: string) => Buffer.from(text, "base64url")
  const wallets = new Map<string, string>()
  beforeAll(async () => {
    for (const { config } of all) {
      if (wallets.has(configHash(config))) continue
      const wallet = await createWallet(chain, "v0.7", `signatures ${wallets.size}`, config)
      wallets.set(configHash(config), await wallet.getAddress())
    }
  })

  test("have good and bad ones of every form", () => {
    const forms = all.map(
      ({ ecdsa, passkeys, valid }) => `${valid} ${ecdsa.length > 2} ${passkeys.length > 0}`
    )
    expect(new Set(forms).size).toBe(6)
  })

  test.each(all.map((vector) => [vector.about, vector] as const))("%s", async (_, vector) => {
    const { conditions, config, proof, signature, userOpHash, valid } = vector
    const assertions = vector.passkeys.map(({ index, response }) => ({
      index,
      auth: assertionOf({
        signature: bytes(response.signature),
        authenticatorData: bytes(response.authenticatorData),
        clientDataJSON: bytes(response.clientDataJSON)
      })
    }))
    expect(signingHash(userOpHash, conditions)).toBe(vector.signingHash)
    expect(assertions.length === 0 ? vector.ecdsa : mixedProof(vector.ecdsa, assertions)).toBe(proof)
    expect(opSignature(conditions, proof)).toBe(signature)
    expect(await verify(config, vector.signingHash, proof)).toBe(valid)
    const sender = wallets.get(configHash(config)) ?? ""
    const wrong = window(conditions) | 1n
    for (const version of entryPointVersions) {
      const data = validateCall(version, newOp(sender, { signature }), userOpHash)
      const submit = async (from: string) => BigInt(await validated(version, from, sender, data))
      expect(await submit(conditions.bundler)).toBe(valid ? window(conditions) : wrong)
      if (BigInt(conditions.bundler) !== 0n) expect(await submit(chain.stranger.address)).toBe(wrong)
    }
  })
})

test("sponsorships, bound and unbound, of each EntryPoint", async () => {
  interface Vector {
    readonly version: EntryPointVersion
    readonly chainId: number | string
    readonly sponsor: string
    readonly bundler: string
    readonly userOpHash: string
    readonly paymasterAndData: string
    readonly signature: string
    readonly sponsorSignature: string
    readonly walletSignature: string
    readonly terms: {
      readonly paymaster: string
      readonly validUntil: number
      readonly validAfter: number
      readonly unbound: boolean
    }
  }
  const abi = new Interface(artifact("SponsorPaymaster").abi)
  const here = vectors<Vector>("sponsorship").filter(({ chainId }) => BigInt(chainId) === chain.chainId)
  expect(here.map(({ terms, version }) => `${version} ${terms.unbound}`)).toEqual(
    entryPointVersions.flatMap((version) => [`${version} false`, `${version} true`])
  )
  for (const each of here) {
    const { bundler, sponsor, terms, userOpHash, version } = each
    const args = [sponsor, chain.factoryOwner.address, ...Object.values(entryPoints)]
    await place(terms.paymaster, await (await create("SponsorPaymaster", args, chain.stranger)).getAddress())
    const verdict = async (signature: string) => {
      const op = newOp(chain.stranger.address, { paymasterAndData: each.paymasterAndData, signature })
      const struct =
        version === "v0.6"
          ? "(address,uint256,bytes,bytes,uint256,uint256,uint256,uint256,uint256,bytes,bytes)"
          : "(address,uint256,bytes,bytes,bytes32,uint256,bytes32,bytes,bytes)"
      const data = abi.encodeFunctionData(`validatePaymasterUserOp(${struct},bytes32,uint256)`, [
        pack(version, op),
        userOpHash,
        0n
      ])
      const from = terms.unbound ? chain.stranger.address : bundler
      const answer = await validated(version, from, terms.paymaster, data)
      return AbiCoder.defaultAbiCoder().decode(["bytes", "uint256"], answer).toArray()
    }
    expect(await verdict(each.signature)).toEqual(["0x", window(terms)])
    expect(await verdict(each.sponsorSignature)).toEqual(["0x", window(terms)])
    expect(await verdict(each.walletSignature)).toEqual(["0x", window(terms) | 1n])
  }
})
