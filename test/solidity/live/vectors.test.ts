import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as Either from "effect/Either"
import { AbiCoder, concat, keccak256 } from "ethers"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as OpConditions from "../../../src/domain/signature/Conditions.js"
import * as Custody from "../../../src/domain/wallet/Custody.js"
import * as Deployment from "../../../src/domain/wallet/Deployment.js"
import * as Salt from "../../../src/domain/wallet/Salt.js"
import * as WalletAddress from "../../../src/domain/wallet/WalletAddress.js"
import * as WalletConfig from "../../../src/domain/wallet/WalletConfig.js"
import { walletProxyCreationCode } from "../../../src/domain/wallet/WalletProxy.generated.js"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { forwarderCode, revertOf, validateCall } from "../../support/suite/Calls.js"
import { at, type Chain, create, devKey, startChain } from "../../support/suite/Chain.js"
import { configOf } from "../../support/suite/Keys.js"
import {
  type Conditions,
  type Config,
  configHash,
  create2Salt,
  type Deploy,
  ledgerKey,
  mixedProof,
  opSignature,
  type PasskeyProof,
  saltHash,
  signingHash,
  walletInitCode,
  zeroAddress
} from "../../support/suite/Layouts.js"
import { createWallet, factoryAbi, newOp } from "../../support/suite/Ops.js"

/** The vectors of test/vectors: what the contracts, the domain and the layouts make of the same input. */
const vectors = <A>(name: string): ReadonlyArray<A> => {
  const file = fileURLToPath(new URL(`../../vectors/${name}.json`, import.meta.url))
  return JSON.parse(readFileSync(file, "utf8")).vectors
}

const right = <A, E>(either: Either.Either<A, E>): A => Either.getOrThrow(either)
const address = (text: string) => right(Address.from(text))
const word = (text: string) => right(Hex.from32(text))

const configFrom = (config: Config): WalletConfig.WalletConfig => ({
  custody: right(Custody.stored(config.custody)),
  threshold: config.threshold,
  owners: config.owners.map(address),
  passkeys: config.passkeys.map(({ x, y }) => ({ x: word(x), y: word(y) }))
})

const conditionsFrom = (conditions: Conditions): OpConditions.Conditions => ({
  ...conditions,
  bundler: address(conditions.bundler)
})

let chain: Chain
beforeAll(async () => {
  chain = await startChain(["--timestamp", "1799999000"])
})
afterAll(() => chain.stop())

test("configHash", () => {
  for (const vector of vectors<{ config: Config; encoded: string; configHash: string }>("configHash")) {
    expect(keccak256(vector.encoded)).toBe(vector.configHash)
    expect(configHash(vector.config)).toBe(vector.configHash)
    expect(WalletConfig.encode(configFrom(vector.config))).toBe(vector.encoded)
    expect(WalletConfig.configHash(configFrom(vector.config))).toBe(vector.configHash)
  }
})

/** A factory with the code of ours at the vectors' address, on a beacon at the vectors' address. */
const placeFactory = async (factory: string, beacon: string, deployer: string) => {
  await chain.provider.send("anvil_setCode", [beacon, await chain.provider.getCode(chain.suite.beacon)])
  for (const slot of [0, 1])
    await chain.provider.send("anvil_setStorageAt", [
      beacon,
      `0x${slot.toString(16).padStart(64, "0")}`,
      await chain.provider.getStorage(chain.suite.beacon, slot)
    ])
  const made = await create(
    "WalletFactory",
    [beacon, deployer, deployer, ...Object.values(entryPoints)],
    chain.stranger
  )
  const source = await made.getAddress()
  await chain.provider.send("anvil_setCode", [factory, await chain.provider.getCode(source)])
  const slot = await chain.provider.getStorage(source, 0)
  await chain.provider.send("anvil_setStorageAt", [factory, `0x${"00".repeat(32)}`, slot])
  return at("WalletFactory", factory, chain)
}

interface AddressVector {
  readonly salt: string
  readonly custody: number
  readonly legacy: boolean
  readonly factory: string
  readonly beacon: string
  readonly creationCodeHash: string
  readonly saltHash: string
  readonly create2Salt: string
  readonly initCodeHash: string
  readonly wallet: string
}

test("wallet addresses, with their salts", async () => {
  for (const vector of vectors<AddressVector>("walletAddress")) {
    expect(keccak256(walletProxyCreationCode)).toBe(vector.creationCodeHash)
    expect(saltHash(vector.salt)).toBe(vector.saltHash)
    expect(create2Salt(vector.saltHash, vector.custody, vector.legacy)).toBe(vector.create2Salt)
    expect(keccak256(walletInitCode(walletProxyCreationCode, vector.beacon))).toBe(vector.initCodeHash)

    const code = right(WalletAddress.creationCode(walletProxyCreationCode))
    const initCodeHash = WalletAddress.initCodeHash(code, address(vector.beacon))
    const salt = WalletAddress.create2Salt(
      Salt.hash(right(Salt.from(vector.salt))),
      right(Custody.stored(vector.custody)),
      vector.legacy
    )
    expect(initCodeHash).toBe(vector.initCodeHash)
    expect(salt).toBe(vector.create2Salt)
    const factory = address(vector.factory)
    expect(WalletAddress.predict({ factory, initCodeHash, create2Salt: salt })).toBe(vector.wallet)
  }
  const [first] = vectors<AddressVector>("walletAddress")
  if (first === undefined) throw new Error("no vectors")
  const factory = await placeFactory(first.factory, first.beacon, chain.deployer.address)
  for (const { saltHash, custody, legacy, wallet } of vectors<AddressVector>("walletAddress"))
    expect(await factory.getFunction("getAddress").staticCall(saltHash, custody, legacy)).toBe(wallet)
})

interface DeployVector {
  readonly chainId: number
  readonly factory: string
  readonly deploy: Deploy
  readonly config: Config
  readonly digest: string
  readonly deployer: string
  readonly authorization: string
}

test("deployment digests, with the deployer's signature", async () => {
  const all = vectors<DeployVector>("deployDigest")
  for (const { chainId, factory, deploy, config, digest } of all)
    expect(
      Deployment.digest(
        { chainId: BigInt(chainId), factory: address(factory) },
        {
          ...deploy,
          saltHash: word(deploy.saltHash),
          custody: right(Custody.stored(deploy.custody)),
          config: configFrom(config)
        },
        address(deploy.bundler)
      )
    ).toBe(digest)

  const [beacon = ""] = vectors<AddressVector>("walletAddress").map((vector) => vector.beacon)
  for (const { chainId, factory, deploy, config, deployer, authorization } of all) {
    await placeFactory(factory, beacon, deployer)
    const { bundler, saltHash, custody, legacy, deadline } = deploy
    const data = factoryAbi.encodeFunctionData("createWallet", [
      saltHash,
      custody,
      legacy,
      config,
      deadline,
      authorization
    ])
    const from = bundler === zeroAddress ? chain.stranger.address : bundler
    const answer = await revertOf(chain, { from, to: factory, data }, factoryAbi)
    expect(answer).toBe(BigInt(chainId) === chain.chainId ? "none" : "InvalidAuthorization()")
  }
})

test("signing hashes", () => {
  const all = vectors<{ userOpHash: string; conditions: Conditions; signingHash: string }>("signingHash")
  for (const vector of all) {
    expect(signingHash(vector.userOpHash, vector.conditions)).toBe(vector.signingHash)
    expect(OpConditions.signingHash(word(vector.userOpHash), conditionsFrom(vector.conditions))).toBe(
      vector.signingHash
    )
  }
})

test("op signatures", async () => {
  const all = vectors<{ conditions: Conditions; proof: string; signature: string }>("opSignature")
  const [{ userOpHash } = { userOpHash: "" }] = vectors<{ userOpHash: string }>("signingHash")
  const wallet = await createWallet(chain, "v0.7", "vectors", configOf(1, [devKey(20)]))
  const sender = await wallet.getAddress()
  for (const { conditions, proof, signature } of all) {
    expect(opSignature(conditions, proof)).toBe(signature)
    expect(OpConditions.encodeSignature(conditionsFrom(conditions), Hex.unsafe(proof))).toBe(signature)
    // The EntryPoint forwards here, so that the wallet sees it as the caller and the bundler as tx.origin.
    const answer = await chain.provider.send("eth_call", [
      {
        from: conditions.bundler,
        to: entryPoints["v0.7"],
        data: concat([sender, validateCall("v0.7", newOp(sender, { signature }), userOpHash)])
      },
      "latest",
      { [entryPoints["v0.7"]]: { code: forwarderCode } }
    ])
    expect(BigInt(answer)).toBe(
      (BigInt(conditions.validAfter) << 208n) | (BigInt(conditions.validUntil) << 160n)
    )
  }
})

interface ProofVector {
  readonly form: "ecdsa" | "abi"
  readonly config: Config
  readonly hash: string
  readonly ecdsa?: string
  readonly passkeys?: ReadonlyArray<PasskeyProof>
  readonly proof: string
  readonly valid: boolean
}

describe("proofs", () => {
  test.each(vectors<ProofVector>("proofs").map((vector, i) => [i, vector] as const))(
    "%i",
    async (_, vector) => {
      const { config, hash, proof, ecdsa, passkeys, form, valid } = vector
      const verify = at("CustodyValidator", chain.suite.validator, chain).getFunction("verify")
      expect(await verify.staticCall(config, hash, proof)).toBe(valid)
      expect((proof.length - 2) / 2 <= 1040 && ((proof.length - 2) / 2) % 65 === 0).toBe(form === "ecdsa")
      if (ecdsa !== undefined && passkeys !== undefined) expect(mixedProof(ecdsa, passkeys)).toBe(proof)
    }
  )
})

test("ledger keys", () => {
  for (const vector of vectors<{ entryPoint: string; wallet: string; nonce: string; key: string }>(
    "ledgerKey"
  )) {
    const { entryPoint, wallet, nonce, key } = vector
    expect(ledgerKey(entryPoint, wallet, BigInt(nonce))).toBe(key)
    const words = AbiCoder.defaultAbiCoder().encode(
      ["address", "address", "uint256"],
      [entryPoint, wallet, nonce]
    )
    expect(keccak256(words)).toBe(key)
  }
})
