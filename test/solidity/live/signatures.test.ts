import { readFileSync } from "node:fs"
import { concat } from "ethers"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type EntryPointVersion, entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { forwarderCode, validateCall } from "../../support/suite/Calls.js"
import { at, type Chain, startChain } from "../../support/suite/Chain.js"
import { assertionOf } from "../../support/suite/Keys.js"
import {
  type Conditions,
  type Config,
  configHash,
  mixedProof,
  opSignature,
  signingHash
} from "../../support/suite/Layouts.js"
import { createWallet, newOp } from "../../support/suite/Ops.js"

/** test/vectors/signatures.json, as ethers, the validator and real wallets judge it. */

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

const { vectors }: { readonly vectors: ReadonlyArray<Vector> } = JSON.parse(
  readFileSync(new URL("../../vectors/signatures.json", import.meta.url), "utf8")
)
const cases = vectors.map((vector) => [vector.about, vector] as const)
const bytes = (text: string) => Buffer.from(text, "base64url")

test("there are vectors of every form, good and bad ones", () => {
  const forms = vectors.map(({ ecdsa, passkeys, valid }) =>
    [valid, ecdsa.length > 2, passkeys.length > 0].join()
  )
  expect(new Set(forms)).toEqual(
    new Set([
      "true,true,false",
      "true,false,true",
      "true,true,true",
      "false,true,false",
      "false,false,true",
      "false,true,true"
    ])
  )
})

test.each(cases)("ethers encodes the signature of %s", (_, vector) => {
  const assertions = vector.passkeys.map(({ index, response }) => ({
    index,
    auth: assertionOf({
      signature: bytes(response.signature),
      authenticatorData: bytes(response.authenticatorData),
      clientDataJSON: bytes(response.clientDataJSON)
    })
  }))
  expect(signingHash(vector.userOpHash, vector.conditions)).toBe(vector.signingHash)
  expect(assertions.length === 0 ? vector.ecdsa : mixedProof(vector.ecdsa, assertions)).toBe(vector.proof)
  expect(opSignature(vector.conditions, vector.proof)).toBe(vector.signature)
})

describe("on a chain", () => {
  let chain: Chain
  const wallets = new Map<string, string>()
  beforeAll(async () => {
    chain = await startChain()
    for (const { config } of vectors) {
      const hash = configHash(config)
      if (wallets.has(hash)) continue
      const wallet = await createWallet(chain, "v0.7", `signatures ${wallets.size}`, config)
      wallets.set(hash, await wallet.getAddress())
    }
  })
  afterAll(() => chain?.stop())

  test.each(cases)(
    "the validator judges the proof of %s",
    async (_, { config, proof, signingHash, valid }) => {
      const verify = at("CustodyValidator", chain.suite.validator, chain).getFunction("verify")
      expect(await verify.staticCall(config, signingHash, proof)).toBe(valid)
    }
  )

  test.each(cases)("wallets judge the op's signature of %s", async (_, vector) => {
    const { conditions, config, signature, userOpHash, valid } = vector
    const sender = wallets.get(configHash(config)) ?? ""
    const window = (BigInt(conditions.validAfter) << 208n) | (BigInt(conditions.validUntil) << 160n)
    const versions: ReadonlyArray<EntryPointVersion> = ["v0.6", "v0.7", "v0.8"]
    for (const version of versions) {
      const data = validateCall(version, newOp(sender, { signature }), userOpHash)
      const submit = async (from: string): Promise<bigint> =>
        // The EntryPoint forwards here, so that the wallet sees it as the caller and the bundler as tx.origin.
        BigInt(
          await chain.provider.send("eth_call", [
            { from, to: entryPoints[version], data: concat([sender, data]) },
            "latest",
            { [entryPoints[version]]: { code: forwarderCode } }
          ])
        )
      expect(await submit(conditions.bundler)).toBe(valid ? window : window | 1n)
      if (BigInt(conditions.bundler) !== 0n) expect(await submit(chain.stranger.address)).toBe(window | 1n)
    }
  })
})
