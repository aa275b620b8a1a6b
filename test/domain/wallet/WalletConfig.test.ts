import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { AbiCoder, keccak256 } from "ethers"
import * as fc from "fast-check"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Words from "../../../src/domain/primitives/Words.js"
import * as WalletConfig from "../../../src/domain/wallet/WalletConfig.js"
import { newPasskey } from "../../support/suite/Keys.js"
import { config, forAll, hex, mutated, uint } from "../generators.js"

const coder = AbiCoder.defaultAbiCoder()
const struct = "(uint8 custody,uint8 threshold,address[] owners,(bytes32 x,bytes32 y)[] passkeys)"

const returned = fc
  .tuple(config, uint(64))
  .map(([it, nonce]) => Hex.unsafe(coder.encode([struct, "uint64"], [it, nonce])))

describe("WalletConfig", () => {
  it("WalletConfig is encoded and hashed as Solidity's abi.encode(config)", () => {
    forAll([config], (it) => {
      const encoded = coder.encode([struct], [it])
      expect(WalletConfig.encode(it)).toBe(encoded)
      expect(WalletConfig.configHash(it)).toBe(keccak256(encoded))
    })
  })

  it("WalletConfig is read back from what configuration() returns", () => {
    forAll([config, uint(64)], (it, configNonce) => {
      const data = Hex.unsafe(coder.encode([struct, "uint64"], [it, configNonce]))
      expect(WalletConfig.decode(data)).toEqual(Result.succeed({ config: it, configNonce }))
    })
  })

  it("WalletConfig is read only from possible results of configuration()", () => {
    forAll(
      [mutated(returned)],
      ([right, wrong]) => {
        const result = WalletConfig.decode(wrong)
        if (wrong !== right && Result.isSuccess(result))
          expect(result).not.toEqual(WalletConfig.decode(right))
      },
      { numRuns: 500 }
    )
    forAll([hex(700)], (garbage) => {
      expect(Result.isFailure(WalletConfig.decode(garbage))).toBe(true)
    })
  })

  it("an unknown custody, or a count beyond the data, is refused immediately", () => {
    const huge = Words.uint((1n << 256n) - 1n)
    const head = (custody: bigint) => [0x40n, 1n, custody, 1n].map((word) => Words.uint(word)).join("")
    const texts = [
      `0x${head(0n)}${Words.uint(0x80n)}${Words.uint(0xa0n)}${Words.uint(0n)}${Words.uint(0n)}`,
      `0x${head(6n)}${Words.uint(0x80n)}${Words.uint(0xa0n)}${Words.uint(0n)}${Words.uint(0n)}`,
      `0x${head(1n)}${Words.uint(0x80n)}${Words.uint(0xa0n)}${huge}${huge}`,
      `0x${head(1n)}${huge}${huge}${huge}${huge}`,
      `0x${huge.repeat(1000)}`,
      `0x${head(1n)}${Words.uint(0x80n)}${Words.uint(0x80n)}${Words.uint(4000n)}${huge.repeat(4000)}`
    ]
    for (const text of texts) expect(Result.isFailure(WalletConfig.decode(Hex.unsafe(text)))).toBe(true)
  })

  it("a threshold that is not a uint8 is encoded as 0, which no wallet accepts", () => {
    forAll(
      [config, fc.constantFrom(-1, 0, 0.5, 256, Number.NaN, Number.POSITIVE_INFINITY)],
      (it, threshold) => {
        expect(WalletConfig.encode({ ...it, threshold })).toBe(WalletConfig.encode({ ...it, threshold: 0 }))
      }
    )
  })

  const owner = (digit: string) => Address.unsafe(`0x${digit.repeat(40)}`)
  const owners = ["3", "1", "2"].map(owner)
  const passkeys = Array.from({ length: 17 }, newPasskey).map(({ publicKey: { x, y } }) => ({
    x: Hex.unsafe32(x),
    y: Hex.unsafe32(y)
  }))
  const keys = (count: number) => passkeys.slice(0, count)
  const byKey = (one: WalletConfig.PublicKey, two: WalletConfig.PublicKey) =>
    one.x + one.y < two.x + two.y ? -1 : 1

  it("a config takes validators in any order, each list in its own", () => {
    forAll(
      [fc.shuffledSubarray(owners, { minLength: 1 }), fc.integer({ min: 1, max: 16 })],
      (some, count) => {
        const threshold = some.length + count
        const made = WalletConfig.make({ custody: 4, owners: some, passkeys: keys(count), threshold })
        const inOrder = { owners: some.toSorted(), passkeys: keys(count).toSorted(byKey) }
        expect(made).toEqual(Result.succeed({ custody: 4, threshold, ...inOrder }))
        expect(WalletConfig.validators(Result.getOrThrow(made))).toBe(threshold)
      }
    )
    expect(WalletConfig.make({ custody: 1, owners: [owner("3")], passkeys: [], threshold: 1 })).toEqual(
      Result.succeed(WalletConfig.ecdsa(owner("3")))
    )
  })

  const many = Array.from({ length: 17 }, (_, index) =>
    Address.fromWord((index + 1).toString(16).padStart(40, "0"))
  )
  const x = keys(1)[0] ?? { x: Hex.unsafe32(""), y: Hex.unsafe32("") }
  const one = [owner("1")]
  const points = "expected points of the curve P-256"
  it.each<
    readonly [
      custody: WalletConfig.Named["custody"],
      owners: WalletConfig.Named["owners"],
      passkeys: WalletConfig.Named["passkeys"],
      threshold: number,
      problem: string
    ]
  >([
    [1, [], [], 1, "signers: expected one signer, but there are 0"],
    [1, owners, [], 1, "signers: expected one signer, but there are 3"],
    [2, owners, keys(1), 1, "signers: expected one signer, but there are 3"],
    [3, [], [], 1, "signers: expected 1 to 16 signers, but there are 0"],
    [3, many, [], 1, "signers: expected 1 to 16 signers, but there are 17"],
    [5, one, keys(1), 1, "signers: expected no signer, but there are 1"],
    [1, one, keys(1), 1, "passkeyPubKey: expected no passkey, but there are 1"],
    [3, owners, keys(1), 1, "passkeyPubKey: expected no passkey, but there are 1"],
    [2, one, [], 1, "passkeyPubKey: expected 1 to 16 passkeys, but there are 0"],
    [4, owners, [], 1, "passkeyPubKey: expected 1 to 16 passkeys, but there are 0"],
    [5, [], keys(17), 1, "passkeyPubKey: expected 1 to 16 passkeys, but there are 17"],
    [3, [...one, Address.zero], [], 1, "signers: the zero address cannot sign"],
    [3, [...owners, owner("2")], [], 1, `signers: ${owner("2")} is named twice`],
    [5, [], [x, x], 1, `passkeyPubKey: the key (${x.x}, ${x.y}) is named twice`],
    [5, [], [{ x: x.y, y: x.x }], 1, `passkeyPubKey: ${points}`],
    [5, [], [{ x: x.x, y: x.x }], 1, `passkeyPubKey: ${points}`],
    [3, owners, [], 0, "threshold: expected 1 to 3, the number of validators"],
    [3, owners, [], 4, "threshold: expected 1 to 3, the number of validators"],
    [4, owners, keys(2), 6, "threshold: expected 1 to 5, the number of validators"],
    [4, owners, keys(2), 1.5, "threshold: expected 1 to 5, the number of validators"],
    [4, owners, keys(2), Number.NaN, "threshold: expected 1 to 5, the number of validators"],
    [1, one, [], 2, "threshold: expected 1, which custody 1 has always"],
    [2, one, keys(2), 2, "threshold: expected 1, which custody 2 has always"],
    [5, [], keys(2), 2, "threshold: expected 1, which custody 5 has always"]
  ])("WalletConfig refuses validators: %#", (custody, owners, passkeys, threshold, problem) => {
    const made = WalletConfig.make({ custody, owners, passkeys, threshold })
    expect(Result.mapError(made, ({ field, message }) => `${field}: ${message}`)).toEqual(
      Result.fail(problem)
    )
  })
})

describe("the epoch of a configuration", () => {
  it("a configuration's epoch counts earlier ones, and is 0 before installation", () => {
    expect([0n, 1n, 2n, 7n].map((configNonce) => WalletConfig.epochOf({ configNonce }))).toEqual([
      0n,
      0n,
      1n,
      6n
    ])
  })
})
