import {
  AbiCoder,
  type Contract,
  concat,
  hashMessage,
  id,
  keccak256,
  TypedDataEncoder,
  toBeHex
} from "ethers"
import { afterAll, beforeAll, describe, expect, test } from "vitest"
import { type Chain, devKey, startChain } from "../../support/suite/Chain.js"
import * as Erc7739 from "../../support/suite/Erc7739.js"
import {
  assertion,
  configOf,
  ecdsa,
  highS,
  newPasskey,
  parityV,
  passkeyProof
} from "../../support/suite/Keys.js"
import { mixedProof, opSignature, signingHash, unbound } from "../../support/suite/Layouts.js"
import { createWallet, execute, handleOps, hashOf, newOp, nonceOf, refusal } from "../../support/suite/Ops.js"

/** Not that of the other files: a domain with one chain in it would go unnoticed. */
const chainId = 84_532

let chain: Chain
let wallet: Contract
let address: string
const [a, b] = [devKey(20), devKey(21)] as const
const passkey = newPasskey()

beforeAll(async () => {
  chain = await startChain([], chainId)
  wallet = await createWallet(chain, "v0.7", "signs", configOf(1, [a]))
  address = await wallet.getAddress()
})
afterAll(() => chain.stop())

const valid = "0x1626ba7e"
const invalid = "0xffffffff"
const ask = (hash: string, signature: string, of = wallet): Promise<string> =>
  of.getFunction("isValidSignature").staticCall(hash, signature)

const domainOf = (verifyingContract: string) => Erc7739.domainOf(chain, verifyingContract)
const personalDigest = (hash: string, of = address) => Erc7739.personalDigest(chain, hash, of)

const app = {
  domain: { name: "Exchange", version: "3", chainId, verifyingContract: `0x${"ee".repeat(20)}` },
  types: { Order: [{ name: "amount", type: "uint256" }] },
  type: "Order(uint256 amount)",
  value: { amount: 12n }
}

/** ERC-7739, typed data: what is asked, what is signed, and what is appended to the proof. */
const typed = (of = address, on = chainId) => {
  const appSeparator = TypedDataEncoder.hashDomain(app.domain)
  const contents = TypedDataEncoder.from(app.types).hash(app.value)
  const typeHash = id(
    `TypedDataSign(Order contents,string name,string version,uint256 chainId,address verifyingContract,bytes32 salt)${app.type}`
  )
  const { name, version, verifyingContract } = domainOf(of)
  const nested = AbiCoder.defaultAbiCoder().encode(
    ["bytes32", "bytes32", "bytes32", "bytes32", "uint256", "address", "bytes32"],
    [typeHash, contents, id(name), id(version), on, verifyingContract, `0x${"00".repeat(32)}`]
  )
  return {
    hash: TypedDataEncoder.hash(app.domain, app.types, app.value),
    digest: keccak256(concat(["0x1901", appSeparator, keccak256(nested)])),
    trailer: concat([
      appSeparator,
      contents,
      `0x${Buffer.from(app.type).toString("hex")}`,
      toBeHex(app.type.length, 2)
    ])
  }
}

describe("a wallet's signature", () => {
  test("counts over the message nested under the wallet's domain", async () => {
    const hash = hashMessage("pay 12 to the miller")
    expect(await ask(hash, ecdsa(personalDigest(hash), a))).toBe(valid)
    const { hash: order, digest, trailer } = typed()
    expect(await ask(order, concat([ecdsa(digest, a), trailer]))).toBe(valid)
  })

  test("does not count over the bare message", async () => {
    const hash = hashMessage("pay 12 to the miller")
    expect(await ask(hash, ecdsa(hash, a))).toBe(invalid)
    const { hash: order, trailer } = typed()
    expect(await ask(order, concat([ecdsa(order, a), trailer]))).toBe(invalid)
  })

  test("does not count by another key, over another message, or malleated", async () => {
    const hash = hashMessage("pay 12 to the miller")
    const good = ecdsa(personalDigest(hash), a)
    for (const signature of [
      ecdsa(personalDigest(hash), b),
      ecdsa(personalDigest(hash), chain.deployer),
      highS(good),
      parityV(good),
      concat([good, good]),
      "0x",
      "0x1234",
      `0x${"ff".repeat(96)}`,
      `0x${"ff".repeat(200)}`
    ])
      expect(await ask(hash, signature)).toBe(invalid)
    expect(await ask(hashMessage("pay 13 to the miller"), good)).toBe(invalid)
  })

  test("is worthless for another wallet of the same owner", async () => {
    const twin = await createWallet(chain, "v0.7", "signs too", configOf(1, [a]))
    const hash = hashMessage("pay 12 to the miller")
    const good = ecdsa(personalDigest(hash), a)
    expect(await ask(hash, good)).toBe(valid)
    expect(await ask(hash, good, twin)).toBe(invalid)
    const { hash: order, digest, trailer } = typed()
    expect(await ask(order, concat([ecdsa(digest, a), trailer]), twin)).toBe(invalid)
  })

  test("is worthless when it is for another chain", async () => {
    const hash = hashMessage("pay 12 to the miller")
    for (const other of [31_337, 1, 0]) {
      const digest = Erc7739.personalDigest({ chainId: BigInt(other) }, hash, address)
      expect(await ask(hash, ecdsa(digest, a)), `${other}`).toBe(invalid)
      const { hash: order, digest: nested, trailer } = typed(address, other)
      expect(await ask(order, concat([ecdsa(nested, a), trailer])), `${other}`).toBe(invalid)
    }
  })

  test("is by whom the custody says", async () => {
    const hash = hashMessage("pay 12 to the miller")
    const shared = await createWallet(chain, "v0.7", "shared", configOf(4, [a, b], [passkey], 2))
    const digest = personalDigest(hash, await shared.getAddress())
    expect(await ask(hash, ecdsa(digest, a, b), shared)).toBe(valid)
    expect(await ask(hash, mixedProof(ecdsa(digest, b), [assertion(digest, passkey)]), shared)).toBe(valid)
    expect(await ask(hash, ecdsa(digest, a), shared)).toBe(invalid)
    expect(await ask(hash, ecdsa(digest, a, a), shared)).toBe(invalid)
    const lone = await createWallet(chain, "v0.7", "lone", configOf(5, [], [passkey]))
    const own = personalDigest(hash, await lone.getAddress())
    expect(await ask(hash, passkeyProof(own, passkey), lone)).toBe(valid)
    expect(await ask(hash, passkeyProof(own, newPasskey()), lone)).toBe(invalid)
    expect(await ask(hash, ecdsa(own, a), lone)).toBe(invalid)
    const order = typed(await lone.getAddress())
    expect(await ask(order.hash, concat([passkeyProof(order.digest, passkey), order.trailer]), lone)).toBe(
      valid
    )
  })

  test("says that the wallet nests its messages", async () => {
    expect(await ask(`0x${"7739".repeat(16)}`, "0x")).toBe("0x77390001")
  })
})

describe.each(["v0.6", "v0.7", "v0.8"] as const)("operations of EntryPoint %s", (version) => {
  const op = async () =>
    newOp(address, {
      nonce: await nonceOf(chain, version, address),
      callData: execute(chain.stranger.address, "0x", 1n)
    })

  test("an operation's signature is worthless as a message's", async () => {
    const hash = await hashOf(chain, version, await op())
    const bound = { validUntil: 2 ** 40, validAfter: 0, bundler: chain.bundler.address }
    for (const digest of [hash, signingHash(hash, bound)])
      for (const signature of [
        ecdsa(digest, a),
        opSignature(unbound, ecdsa(digest, a)),
        opSignature(bound, ecdsa(digest, a))
      ])
        expect(await ask(digest, signature)).toBe(invalid)
  })

  test("a message's signature is worthless as an operation's", async () => {
    const unsigned = await op()
    const hash = await hashOf(chain, version, unsigned)
    const signature = ecdsa(personalDigest(hash), a)
    expect(await ask(hash, signature)).toBe(valid)
    const forged = { ...unsigned, signature: opSignature(unbound, signature) }
    expect(await refusal(chain, version, [forged])).toBe("AA24 signature error")
    const signed = { ...unsigned, signature: opSignature(unbound, ecdsa(hash, a)) }
    expect((await handleOps(chain, version, [signed])).outcomes[0]?.success).toBe(true)
  })
})

test("nobody asks a wallet to verify a hash that is not nested", async () => {
  const hash = hashMessage("pay 12 to the miller")
  await expect(
    wallet.getFunction("isSignedByValidators").staticCall(hash, ecdsa(hash, a))
  ).rejects.toMatchObject({
    revert: { name: "OnlySelf" }
  })
})
