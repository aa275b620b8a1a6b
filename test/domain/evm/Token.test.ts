import { describe, expect, it } from "@effect/vitest"
import { AbiCoder, encodeBytes32String, Interface, MaxUint256 } from "ethers"
import * as fc from "fast-check"
import * as Token from "../../../src/domain/evm/Token.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { address, forAll } from "../generators.js"

const uint = fc.bigInt({ min: 0n, max: MaxUint256 })
const erc20 = new Interface([
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "event Approval(address indexed owner, address indexed spender, uint256 value)"
])
const erc721 = new Interface([
  "event Transfer(address indexed from, address indexed to, uint256 indexed id)",
  "event Approval(address indexed owner, address indexed spender, uint256 indexed id)",
  "event ApprovalForAll(address indexed owner, address indexed operator, bool approved)"
])
const erc1155 = new Interface([
  "event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value)",
  "event TransferBatch(address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] amounts)"
])

const logOf = (
  of: Interface,
  token: Token.Approval["token"],
  event: string,
  args: ReadonlyArray<unknown>
) => {
  const { data, topics } = of.encodeEventLog(event, args)
  return { address: token, topics: topics.map(Hex.unsafe32), data: Hex.unsafe(data) }
}

describe("token logs", () => {
  it("a transfer is read as ethers writes it, of each standard", () => {
    forAll([address, address, address, uint, uint], (token, from, to, amount, id) => {
      const read = (of: Interface, event: string, ...args: ReadonlyArray<unknown>) =>
        Token.transfersIn(logOf(of, token, event, args))
      const parties = { token, from, to }
      expect(read(erc20, "Transfer", from, to, amount)).toEqual([
        { kind: "erc20", ...parties, amount, id: null }
      ])
      expect(read(erc721, "Transfer", from, to, id)).toEqual([{ kind: "erc721", ...parties, amount: 1n, id }])
      expect(read(erc1155, "TransferSingle", token, from, to, id, amount)).toEqual([
        { kind: "erc1155", ...parties, amount, id }
      ])
      expect(read(erc1155, "TransferBatch", token, from, to, [id, 2n], [amount, 3n])).toEqual([
        { kind: "erc1155", ...parties, amount, id },
        { kind: "erc1155", ...parties, amount: 3n, id: 2n }
      ])
      expect(Token.transfersIn(logOf(erc20, Token.native, "Transfer", [from, to, amount]))).toEqual([
        { kind: "native", token: "native", from, to, amount, id: null }
      ])
    })
  })

  it("an approval is read as ethers writes it, of each standard", () => {
    forAll([address, address, address, uint], (token, owner, spender, amount) => {
      const read = (of: Interface, event: string, ...args: ReadonlyArray<unknown>) =>
        Token.approvalIn(logOf(of, token, event, args))
      const parties = { token, owner, spender }
      expect(read(erc20, "Approval", owner, spender, amount)).toEqual({ kind: "erc20", ...parties, amount })
      expect(read(erc721, "Approval", owner, spender, 7n)).toEqual({
        kind: "erc721",
        ...parties,
        amount: BigInt(spender) === 0n ? 0n : 1n
      })
      for (const [approved, all] of [
        [true, MaxUint256],
        [false, 0n]
      ])
        expect(read(erc721, "ApprovalForAll", owner, spender, approved)).toEqual({
          kind: "all",
          ...parties,
          amount: all
        })
    })
  })

  it("other and malformed logs report nothing, and a batch no more than its data holds", () => {
    forAll([address, address], (token, from) => {
      const { topics } = logOf(erc20, token, "Transfer", [from, from, 1n])
      const silent = { address: token, topics, data: Hex.empty }
      expect(Token.transfersIn(silent)).toEqual([])
      expect(Token.transfersIn({ ...silent, topics: topics.slice(0, 2) })).toEqual([])
      expect(Token.approvalIn(silent)).toBeNull()
      const batch = logOf(erc1155, token, "TransferBatch", [from, from, from, [], []])
      const long = `0x${"40".padStart(64, "0")}${"40".padStart(64, "0")}${"f".repeat(64)}`
      expect(Token.transfersIn({ ...batch, data: Hex.unsafe(long) })).toEqual([])
    })
  })
})

describe("allowances", () => {
  it("the highest values of the types that tokens keep allowances in are unlimited", () => {
    for (const amount of [MaxUint256, 2n ** 255n, 2n ** 96n - 1n, 2n ** 128n - 1n, 2n ** 160n - 1n])
      expect(Token.isUnlimited(amount)).toBe(true)
    for (const amount of [0n, 10n ** 30n, 2n ** 96n, 2n ** 255n - 1n])
      expect(Token.isUnlimited(amount)).toBe(false)
  })
})

describe("token labels", () => {
  const coder = AbiCoder.defaultAbiCoder()
  const label = (symbol: string, decimals: bigint) =>
    Token.labelOf(Hex.unsafe(symbol), Hex.unsafe(coder.encode(["uint256"], [decimals])))

  it("a symbol is read from a string and from bytes32, without unprintable characters and shortened", () => {
    for (const symbol of [coder.encode(["string"], ["USDC"]), encodeBytes32String("USDC")])
      expect(label(symbol, 6n)).toEqual({ symbol: "USDC", decimals: 6 })
    expect(label(coder.encode(["string"], ["a\u202e <b>longer than twelve"]), 6n)?.symbol).toBe(
      "a<b>longerth"
    )
  })

  it("a contract without a symbol or with other decimals has no label", () => {
    expect(label("0x", 6n)).toBeNull()
    expect(label(coder.encode(["string"], ["USDC"]), 37n)).toBeNull()
    expect(Token.labelOf(Hex.unsafe(encodeBytes32String("USDC")), Hex.empty)).toBeNull()
  })
})
