import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"
import type { RawLog } from "./RawLog.js"

/**
 * Events and labels of tokens: ERC-20, ERC-721, ERC-1155, and the chain's coin in traced simulations.
 *
 * Gotchas: any contract can emit any log and return any label. Only balances are facts.
 */

/** The contract of the logs that `eth_simulateV1` adds for transfers of the chain's coin. */
export const native: Address.Address = Address.unsafe("0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE")

export interface Transfer {
  readonly kind: "native" | "erc20" | "erc721" | "erc1155"
  readonly token: Address.Address | "native"
  readonly from: Address.Address
  readonly to: Address.Address
  /** Least units; 1 of an ERC-721 token. */
  readonly amount: bigint
  /** Token id of ERC-721 and ERC-1155; otherwise null. */
  readonly id: bigint | null
}

export interface Approval {
  /** `all`: every token of the contract, ERC-721's or ERC-1155's (ApprovalForAll). */
  readonly kind: "erc20" | "erc721" | "all"
  readonly token: Address.Address
  readonly owner: Address.Address
  readonly spender: Address.Address
  /** Least units; of ERC-721 1, of `all` the highest uint256, and 0 when it is revoked. */
  readonly amount: bigint
}

const topics = {
  transfer: Keccak.hashText("Transfer(address,address,uint256)"),
  single: Keccak.hashText("TransferSingle(address,address,address,uint256,uint256)"),
  batch: Keccak.hashText("TransferBatch(address,address,address,uint256[],uint256[])"),
  approval: Keccak.hashText("Approval(address,address,uint256)"),
  approvalForAll: Keccak.hashText("ApprovalForAll(address,address,bool)")
}

type Log = Pick<RawLog, "address" | "topics" | "data">

const who = (topic: Hex.Bytes32): Address.Address => Address.fromWord(topic.slice(2))

/** Transfers that a log reports; none for other logs. */
export const transfersIn = ({ address, data, topics: [topic, ...indexed] }: Log): ReadonlyArray<Transfer> => {
  const [first, second, third] = indexed
  if (first === undefined || second === undefined) return []
  const cursor = Words.read(data)
  if (topic === topics.transfer) {
    const parties = { from: who(first), to: who(second) }
    if (third !== undefined)
      return [{ kind: "erc721", token: address, ...parties, amount: 1n, id: BigInt(third) }]
    if (Hex.size(data) < 32) return []
    const amount = Words.readUint(cursor, 0)
    return address === native
      ? [{ kind: "native", token: "native", ...parties, amount, id: null }]
      : [{ kind: "erc20", token: address, ...parties, amount, id: null }]
  }
  if (third === undefined) return []
  const of = (id: bigint, amount: bigint): Transfer => ({
    kind: "erc1155",
    token: address,
    from: who(second),
    to: who(third),
    amount,
    id
  })
  if (topic === topics.single) return [of(Words.readUint(cursor, 0), Words.readUint(cursor, 32))]
  if (topic !== topics.batch) return []
  const [ids, amounts] = [Words.readArray(cursor, 0), Words.readArray(cursor, 32)]
  return Array.from({ length: Math.min(ids.count, amounts.count) }, (_, place) =>
    of(Words.readUint(ids.elements, place * 32), Words.readUint(amounts.elements, place * 32))
  )
}

/** The approval that a log reports; null: another log. */
export const approvalIn = ({ address, data, topics: [topic, owner, spender, id] }: Log): Approval | null => {
  if (owner === undefined || spender === undefined) return null
  const parties = { token: address, owner: who(owner), spender: who(spender) }
  const value = Words.readUint(Words.read(data), 0)
  if (topic === topics.approvalForAll)
    return { kind: "all", ...parties, amount: value === 0n ? 0n : 2n ** 256n - 1n }
  if (topic !== topics.approval) return null
  return id === undefined
    ? { kind: "erc20", ...parties, amount: value }
    : { kind: "erc721", ...parties, amount: BigInt(parties.spender) === 0n ? 0n : 1n }
}

/** Whether spenders treat the allowance as endless: the highest value of a type that tokens keep it in. */
export const isUnlimited = (amount: bigint): boolean =>
  amount >= 2n ** 255n || [96n, 128n, 160n].some((bits) => amount === 2n ** bits - 1n)

export const calls = {
  symbol: Words.call(Keccak.selector("symbol()"), []),
  decimals: Words.call(Keccak.selector("decimals()"), []),
  /** `balanceOf(address)` of ERC-20 and ERC-721. */
  balanceOf: (holder: Address.Address): Hex.Hex =>
    Words.call(Keccak.selector("balanceOf(address)"), [Words.address(holder)])
}

/** A token's name and scale for people. */
export interface Label {
  readonly symbol: string
  readonly decimals: number
}

/** Printable ASCII of an ABI string or a bytes32, at most 12 characters; empty: there is none. */
const textOf = (data: Hex.Hex): string => {
  const cursor = Words.read(data)
  const isString = Hex.size(data) >= 96 && Words.readUint(cursor, 32) <= 64n
  const bytes = isString ? Words.readBytes(cursor, 0) : Hex.slice(data, 0, Math.min(32, Hex.size(data)))
  return (bytes.slice(2).match(/../g) ?? [])
    .map((digits) => String.fromCharCode(Number.parseInt(digits, 16)))
    .filter((character) => /[!-~]/.test(character))
    .join("")
    .slice(0, 12)
}

/** The label by the returned `symbol()` and `decimals()`; null: the contract has none. */
export const labelOf = (symbol: Hex.Hex, decimals: Hex.Hex): Label | null => {
  const text = textOf(symbol)
  const places = Hex.size(decimals) === 32 ? Number(BigInt(decimals) % 256n) : null
  return text === "" || places === null || places > 36 ? null : { symbol: text, decimals: places }
}
