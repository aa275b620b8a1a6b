import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { type BaseWallet, Interface } from "ethers"
import * as fc from "fast-check"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import * as Proof from "../../../src/domain/signature/Proof.js"
import type * as WalletConfig from "../../../src/domain/wallet/WalletConfig.js"
import { type Chain, devKey, startChain } from "../../support/suite/Chain.js"
import { ecdsaSigners } from "../../support/suite/Signers.js"

let chain: Chain

beforeAll(async () => {
  chain = await startChain()
})

afterAll(() => chain?.stop())

const sign = (hash: Hex.Bytes32, by: BaseWallet) => Hex.unsafe(by.signingKey.sign(hash).serialized)

describe("A proof", () => {
  const keys = Array.from({ length: 5 }, (_, index) => devKey(20 + index)).sort((a, b) =>
    BigInt(a.address) < BigInt(b.address) ? -1 : 1
  )
  const owners = keys.slice(0, 4).map((key) => Address.unsafe(key.address))
  const verify = new Interface([
    "function verify((uint8 custody,uint8 threshold,address[] owners,(bytes32 x,bytes32 y)[] passkeys) config, bytes32 hash, bytes proof) view returns (bool)"
  ])
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n

  const accepted = ["raw", "personal", "parity"] as const
  const kinds = [...accepted, "high", "other hash", "v 29"] as const
  type Kind = (typeof kinds)[number]
  /** One signature, good or bad in one way. */
  const part = (hash: Hex.Bytes32, key: BaseWallet, kind: Kind): Hex.Hex => {
    const good = sign(hash, key)
    const rs = good.slice(0, 130)
    switch (kind) {
      case "raw":
        return good
      case "personal":
        return sign(Proof.eip191(hash), key)
      case "parity":
        return Hex.unsafe(`${rs}${good.endsWith("1b") ? "00" : "01"}`)
      case "high": {
        const s = order - BigInt(`0x${good.slice(66, 130)}`)
        return Hex.unsafe(
          `${good.slice(0, 66)}${s.toString(16).padStart(64, "0")}${good.endsWith("1b") ? "1c" : "1b"}`
        )
      }
      case "other hash":
        return sign(Keccak.hash(hash), key)
      case "v 29":
        return Hex.unsafe(`${rs}1d`)
    }
  }

  it("that the domain finds good or bad is so for the validator on the chain", async () => {
    const seen = { good: 0, bad: 0 }
    const parts = fc.array(
      fc.tuple(
        fc.nat(4),
        fc.oneof(
          { weight: 4, arbitrary: fc.constantFrom<Kind>(...accepted) },
          { weight: 1, arbitrary: fc.constantFrom<Kind>(...kinds) }
        )
      ),
      { minLength: 1, maxLength: 4 }
    )
    await fc.assert(
      fc.asyncProperty(
        parts,
        fc.integer({ min: 1, max: 3 }),
        fc.bigUintN(256),
        async (chosen, threshold, word) => {
          const hash = Hex.unsafe32(`0x${word.toString(16).padStart(64, "0")}`)
          const given = Hex.concat(
            ...chosen.map(([index, kind]) => part(hash, keys[index] ?? devKey(0), kind))
          )
          const normal = Proof.normalise(given)
          const config: WalletConfig.WalletConfig = { custody: 3, threshold, owners, passkeys: [] }
          const answer = await chain.provider.call({
            to: chain.suite.validator,
            data: verify.encodeFunctionData("verify", [config, hash, Result.getOrElse(normal, () => given)])
          })
          const signers = Result.match(normal, {
            onFailure: (): ReadonlyArray<Address.Address | undefined> => [],
            onSuccess: (proof) =>
              ecdsaSigners(hash, proof).map((pair) => owners.find((each) => pair.includes(each)))
          })
          const good =
            signers.length >= threshold &&
            !signers.includes(undefined) &&
            new Set(signers).size === signers.length
          seen[good ? "good" : "bad"] += 1
          expect(BigInt(answer)).toBe(good ? 1n : 0n)
        }
      ),
      { numRuns: 120 }
    )
    console.log(`proofs judged alike: ${seen.good} good, ${seen.bad} bad`)
    expect(seen.good).toBeGreaterThan(0)
    expect(seen.bad).toBeGreaterThan(0)
  })
})
