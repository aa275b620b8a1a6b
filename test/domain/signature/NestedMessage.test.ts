import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { AbiCoder, concat, hashMessage, Interface, TypedDataEncoder, toBeHex, toUtf8Bytes } from "ethers"
import * as fc from "fast-check"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as NestedMessage from "../../../src/domain/signature/NestedMessage.js"
import * as TypedData from "../../../src/domain/signature/typed/TypedData.js"

const wallet = Address.unsafe("0x4444444444444444444444444444444444444444")
const zero = `0x${"00".repeat(32)}`

/** Epochs give versions of any length; the rest is arbitrary. */
const domains = fc.record({
  name: fc.string(),
  version: fc.string(),
  chainId: fc.bigInt({ min: 1n, max: 2n ** 64n }),
  wallet: fc.constant(wallet)
})

/** Struct names before and after each other, so that both descriptions occur. */
const names = fc
  .uniqueArray(fc.stringMatching(/^[A-Z][a-z]{0,5}$/), { minLength: 2, maxLength: 2 })
  .filter((given) => !given.some((name) => ["EIP712Domain", "TypedDataSign"].includes(name)))

const signerOf = ({ wallet: verifyingContract, ...domain }: NestedMessage.Domain) => ({
  ...domain,
  verifyingContract
})

const abi = new Interface([
  "function eip712Domain() view returns (bytes1 fields, string name, string version, uint256 chainId, address verifyingContract, bytes32 salt, uint256[] extensions)"
])
const answered = ({ chainId, name, version, wallet }: NestedMessage.Domain, fields = "0x0f", salt = zero) =>
  Hex.unsafe(abi.encodeFunctionResult("eip712Domain", [fields, name, version, chainId, wallet, salt, []]))

describe("nested messages", () => {
  it("personal messages are hashed as ethers hashes PersonalSign under the wallet's domain", () => {
    fc.assert(
      fc.property(domains, fc.string(), (domain, text) => {
        const hash = Hex.unsafe32(hashMessage(text))
        const nested = NestedMessage.personal(hash, domain)
        const types = { PersonalSign: [{ name: "prefixed", type: "bytes" }] }
        expect(nested.hash).toBe(hash)
        // The member counts as hashed already: ethers hashes bytes, whose hash is then the EIP-191 hash.
        const prefixed = concat([
          toUtf8Bytes(`\x19Ethereum Signed Message:\n${toUtf8Bytes(text).length}`),
          toUtf8Bytes(text)
        ])
        expect(nested.signingHash).toBe(TypedDataEncoder.hash(signerOf(domain), types, { prefixed }))
        expect(nested.signature(Hex.unsafe("0x1234"))).toBe("0x1234")
      })
    )
  })

  it("typed data are hashed as ethers hashes TypedDataSign under the application's domain", () => {
    fc.assert(
      fc.property(domains, names, fc.string(), (domain, [outer = "", inner = ""], text) => {
        const own = {
          [outer]: [{ name: "inner", type: `${inner}[]` }],
          [inner]: [{ name: "text", type: "string" }]
        }
        const shop = { name: "Shop", version: "1", chainId: 137n }
        const message = { inner: [{ text }, { text: "" }] }
        const document = { types: own, primaryType: outer, domain: { ...shop, chainId: "137" }, message }
        const parts = Result.getOrThrow(TypedData.parts(document, {}))
        const nested = NestedMessage.typedData(parts, domain)
        expect(nested.hash).toBe(TypedDataEncoder.hash(shop, own, message))
        const types = {
          ...own,
          TypedDataSign: [
            { name: "contents", type: outer },
            { name: "name", type: "string" },
            { name: "version", type: "string" },
            { name: "chainId", type: "uint256" },
            { name: "verifyingContract", type: "address" },
            { name: "salt", type: "bytes32" }
          ]
        }
        const value = { contents: message, ...signerOf(domain), salt: zero }
        expect(nested.signingHash).toBe(TypedDataEncoder.hash(shop, types, value))

        const texts = { [outer]: `${outer}(${inner}[] inner)`, [inner]: `${inner}(string text)` }
        const sorted = [outer, inner]
          .sort()
          .map((name) => texts[name])
          .join("")
        const description = toUtf8Bytes(outer < inner ? sorted : sorted + outer)
        expect(nested.signature(Hex.unsafe("0x1234"))).toBe(
          concat([
            "0x1234",
            TypedDataEncoder.hashDomain(shop),
            TypedDataEncoder.from(own).hash(message),
            description,
            toBeHex(description.length, 2)
          ])
        )
      })
    )
  })
})

describe("the domain that a wallet answers", () => {
  it("is read as ethers writes it", () => {
    fc.assert(
      fc.property(domains, (domain) => {
        expect(NestedMessage.readDomain(answered(domain), domain)).toEqual(domain)
      })
    )
    expect(NestedMessage.domainCall).toBe(abi.encodeFunctionData("eip712Domain"))
  })

  it("is refused for another chain or wallet, with other members, or with bytes behind it", () => {
    const domain = NestedMessage.first(1n, wallet)
    const other = Address.unsafe("0x5555555555555555555555555555555555555555")
    const refused = [
      answered({ ...domain, chainId: 2n }),
      answered({ ...domain, wallet: other }),
      answered(domain, "0x1f"),
      answered(domain, "0x0f", `0x${"11".repeat(32)}`),
      Hex.concat(answered(domain), Hex.unsafe("0x00")),
      Hex.unsafe(answered(domain).replace(Buffer.from("castellan").toString("hex"), "ff".repeat(9))),
      Hex.unsafe(AbiCoder.defaultAbiCoder().encode(["bytes1"], ["0x0f"])),
      Hex.empty
    ]
    for (const data of refused) expect(NestedMessage.readDomain(data, domain)).toBeNull()
  })
})
