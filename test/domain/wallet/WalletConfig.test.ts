import { describe, expect, it } from "@effect/vitest"
import * as Either from "effect/Either"
import { AbiCoder, keccak256 } from "ethers"
import * as fc from "fast-check"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Words from "../../../src/domain/primitives/Words.js"
import * as WalletConfig from "../../../src/domain/wallet/WalletConfig.js"
import { newPasskey } from "../../support/suite/Keys.js"
import { address, config, hex, mutated, uint } from "../generators.js"

const coder = AbiCoder.defaultAbiCoder()
const struct = "(uint8 custody,uint8 threshold,address[] owners,(bytes32 x,bytes32 y)[] passkeys)"

const returned = fc
  .tuple(config, uint(64))
  .map(([it, nonce]) => Hex.unsafe(coder.encode([struct, "uint64"], [it, nonce])))

describe("WalletConfig", () => {
  it("is encoded and hashed as Solidity's abi.encode(config)", () => {
    fc.assert(
      fc.property(config, (it) => {
        const encoded = coder.encode([struct], [it])
        expect(WalletConfig.encode(it)).toBe(encoded)
        expect(WalletConfig.configHash(it)).toBe(keccak256(encoded))
      })
    )
  })

  it("is read back from what configuration() returns", () => {
    fc.assert(
      fc.property(config, uint(64), (it, configNonce) => {
        const data = Hex.unsafe(coder.encode([struct, "uint64"], [it, configNonce]))
        expect(WalletConfig.decode(data)).toEqual(Either.right({ config: it, configNonce }))
      })
    )
  })

  it("is read from nothing that configuration() could not have returned", () => {
    fc.assert(
      fc.property(mutated(returned), ([right, wrong]) => {
        const result = WalletConfig.decode(wrong)
        if (wrong !== right && Either.isRight(result)) expect(result).not.toEqual(WalletConfig.decode(right))
      }),
      { numRuns: 500 }
    )
    fc.assert(
      fc.property(hex(700), (garbage) => {
        expect(Either.isLeft(WalletConfig.decode(garbage))).toBe(true)
      })
    )
  })

  it("of an unknown custody, and counts beyond the data, are refused at once", () => {
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
    for (const text of texts) expect(Either.isLeft(WalletConfig.decode(Hex.unsafe(text)))).toBe(true)
  })

  it("of custody 1 has the one owner and no choice", () => {
    fc.assert(
      fc.property(address, (owner) => {
        expect(WalletConfig.ecdsa(owner)).toEqual({
          custody: 1,
          threshold: 1,
          owners: [owner],
          passkeys: []
        })
      })
    )
  })

  it("with a threshold that is no uint8 is encoded with 0, which no wallet accepts", () => {
    fc.assert(
      fc.property(
        config,
        fc.constantFrom(-1, 0, 0.5, 256, Number.NaN, Number.POSITIVE_INFINITY),
        (it, threshold) => {
          expect(WalletConfig.encode({ ...it, threshold })).toBe(WalletConfig.encode({ ...it, threshold: 0 }))
        }
      )
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

  it("is made of validators in any order, each list in its own", () => {
    fc.assert(
      fc.property(
        fc.shuffledSubarray(owners, { minLength: 1 }),
        fc.integer({ min: 1, max: 16 }),
        (some, count) => {
          const threshold = some.length + count
          const made = WalletConfig.make({ custody: 4, owners: some, passkeys: keys(count), threshold })
          const inOrder = { owners: some.toSorted(), passkeys: keys(count).toSorted(byKey) }
          expect(made).toEqual(Either.right({ custody: 4, threshold, ...inOrder }))
          expect(WalletConfig.validators(Either.getOrThrow(made))).toBe(threshold)
        }
      )
    )
    expect(WalletConfig.make({ custody: 1, owners: [owner("3")], passkeys: [], threshold: 1 })).toEqual(
      Either.right(WalletConfig.ecdsa(owner("3")))
    )
  })

  const many = Array.from({ length: 17 }, (_, index) =>
    Address.fromWord((index + 1).toString(16).padStart(40, "0"))
  )
  const x = keys(1)[0] ?? { x: Hex.unsafe32(""), y: Hex.unsafe32("") }
  it.each<readonly [WalletConfig.Named, WalletConfig.Problem["field"], string]>([
    [
      { custody: 1, owners: [], passkeys: [], threshold: 1 },
      "signers",
      "expected one signer, but there are 0"
    ],
    [
      { custody: 2, owners, passkeys: keys(1), threshold: 1 },
      "signers",
      "expected one signer, but there are 3"
    ],
    [
      { custody: 3, owners: [], passkeys: [], threshold: 1 },
      "signers",
      "expected 1 to 16 signers, but there are 0"
    ],
    [
      { custody: 3, owners: many, passkeys: [], threshold: 1 },
      "signers",
      "expected 1 to 16 signers, but there are 17"
    ],
    [
      { custody: 5, owners: [owner("1")], passkeys: keys(1), threshold: 1 },
      "signers",
      "expected no signer, but there are 1"
    ],
    [
      { custody: 1, owners: [owner("1")], passkeys: keys(1), threshold: 1 },
      "passkeyPubKey",
      "expected no passkey, but there are 1"
    ],
    [
      { custody: 3, owners, passkeys: keys(1), threshold: 1 },
      "passkeyPubKey",
      "expected no passkey, but there are 1"
    ],
    [
      { custody: 2, owners: [owner("1")], passkeys: [], threshold: 1 },
      "passkeyPubKey",
      "expected 1 to 16 passkeys, but there are 0"
    ],
    [
      { custody: 4, owners, passkeys: [], threshold: 1 },
      "passkeyPubKey",
      "expected 1 to 16 passkeys, but there are 0"
    ],
    [
      { custody: 5, owners: [], passkeys: keys(17), threshold: 1 },
      "passkeyPubKey",
      "expected 1 to 16 passkeys, but there are 17"
    ],
    [
      { custody: 3, owners: [owner("1"), Address.zero], passkeys: [], threshold: 1 },
      "signers",
      "the zero address cannot sign"
    ],
    [
      { custody: 3, owners: [...owners, owner("2")], passkeys: [], threshold: 1 },
      "signers",
      `${owner("2")} is named twice`
    ],
    [
      { custody: 5, owners: [], passkeys: [x, x], threshold: 1 },
      "passkeyPubKey",
      `the key (${x.x}, ${x.y}) is named twice`
    ],
    [
      { custody: 5, owners: [], passkeys: [{ x: x.y, y: x.x }], threshold: 1 },
      "passkeyPubKey",
      "expected points of the curve P-256"
    ],
    [
      { custody: 3, owners, passkeys: [], threshold: 0 },
      "threshold",
      "expected 1 to 3, the number of validators"
    ],
    [
      { custody: 3, owners, passkeys: [], threshold: 4 },
      "threshold",
      "expected 1 to 3, the number of validators"
    ],
    [
      { custody: 4, owners, passkeys: keys(2), threshold: 6 },
      "threshold",
      "expected 1 to 5, the number of validators"
    ],
    [
      { custody: 4, owners, passkeys: keys(2), threshold: 1.5 },
      "threshold",
      "expected 1 to 5, the number of validators"
    ],
    [
      { custody: 4, owners, passkeys: keys(2), threshold: Number.NaN },
      "threshold",
      "expected 1 to 5, the number of validators"
    ],
    [
      { custody: 2, owners: [owner("1")], passkeys: keys(2), threshold: 2 },
      "threshold",
      "expected 1, which custody 2 has always"
    ],
    [
      { custody: 5, owners: [], passkeys: keys(2), threshold: 2 },
      "threshold",
      "expected 1, which custody 5 has always"
    ]
  ])("is not made of %#: %s", (named, field, message) => {
    expect(WalletConfig.make(named)).toEqual(Either.left({ field, message }))
  })
})

describe("validators that make no configuration", () => {
  const [one, other] = ["a1", "b2"].map((byte) => Address.unsafe(`0x${byte.repeat(20)}`))
  const { publicKey } = newPasskey()
  const passkey = { x: Hex.unsafe32(publicKey.x), y: Hex.unsafe32(publicKey.y) }
  const why = (named: Partial<WalletConfig.Named>) => {
    const whole: WalletConfig.Named = { custody: 3, owners: [], passkeys: [], threshold: 1, ...named }
    return Either.match(WalletConfig.make(whole), {
      onLeft: ({ field, message }) => `${field}: ${message}`,
      onRight: () => null
    })
  }

  it("are told what of them is wrong, and what was expected", () => {
    if (one === undefined || other === undefined) return
    expect(why({ custody: 3, owners: [one, other], threshold: 2 })).toBeNull()
    expect(why({ custody: 3 })).toBe("signers: expected 1 to 16 signers, but there are 0")
    expect(why({ custody: 1, owners: [one, other] })).toBe("signers: expected one signer, but there are 2")
    expect(why({ custody: 5, owners: [one], passkeys: [passkey] })).toBe(
      "signers: expected no signer, but there are 1"
    )
    expect(why({ custody: 3, owners: [one], passkeys: [passkey] })).toBe(
      "passkeyPubKey: expected no passkey, but there are 1"
    )
    expect(why({ custody: 5, passkeys: [passkey, passkey] })).toBe(
      `passkeyPubKey: the key (${passkey.x}, ${passkey.y}) is named twice`
    )
    expect(why({ custody: 5, passkeys: [{ x: passkey.x, y: passkey.x }] })).toBe(
      "passkeyPubKey: expected points of the curve P-256"
    )
    expect(why({ custody: 3, owners: [one, one] })).toBe(`signers: ${one} is named twice`)
    expect(why({ custody: 3, owners: [Address.zero] })).toBe("signers: the zero address cannot sign")
    for (const threshold of [0, 3, 1.5])
      expect(why({ custody: 3, owners: [one, other], threshold })).toBe(
        "threshold: expected 1 to 2, the number of validators"
      )
    expect(why({ custody: 1, owners: [one], threshold: 2 })).toBe(
      "threshold: expected 1, which custody 1 has always"
    )
  })
})

describe("the epoch of a configuration", () => {
  it("is how many there were before it, and 0 where none is installed", () => {
    expect([0n, 1n, 2n, 7n].map((configNonce) => WalletConfig.epochOf({ configNonce }))).toEqual([
      0n,
      0n,
      1n,
      6n
    ])
  })
})
