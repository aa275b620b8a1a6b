import type { Address } from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"
import * as WalletCalls from "./WalletCalls.js"

/**
 * The OperationLedger makes one op of a transaction depend on another: the first op's batch ends with `record` of its key,
 * and the dependent op's batch begins with `requireRecorded` of that key by the first op's wallet.
 */

/** The keys that an op records and requires. */
export interface Links {
  /** The key of its success; null: no op requires it. */
  readonly records: Hex.Bytes32 | null
  /** The record that must exist before it is executed; null: none. */
  readonly requires: Requirement | null
}

export interface Requirement {
  readonly wallet: Address
  readonly key: Hex.Bytes32
}

export const unlinked: Links = { records: null, requires: null }

/** The key of an op: keccak256(abi.encode(entryPoint, wallet, nonce)). No other op has it. */
export const key = (entryPoint: Address, wallet: Address, nonce: bigint): Hex.Bytes32 =>
  Keccak.hash(Words.encode([Words.address(entryPoint), Words.address(wallet), Words.uint(nonce)]))

/**
 * Stands for the key of the `index`th op (of at most 2^16) while its nonce is not known: distinct for every index, and
 * without a zero byte, so that no key costs more.
 */
export const placeholder = (index: number): Hex.Bytes32 => {
  const bytes = [index >> 12, (index >> 6) & 63, index & 63].map((part) => (64 + (part & 63)).toString(16))
  return Hex.unsafe32(`0x${"ff".repeat(29)}${bytes.join("")}`)
}

const recordSelector = Keccak.selector("record(bytes32)")
const requireSelector = Keccak.selector("requireRecorded(address,bytes32)")
const dependencyFailed = Keccak.selector("DependencyFailed(bytes32)")

/** Calldata of `record(bytes32 key)`. */
export const record = (of: Hex.Bytes32): Hex.Hex => Words.call(recordSelector, [Words.bytes32(of)])

/** Calldata of `requireRecorded(address wallet, bytes32 key)`. */
export const requireRecorded = ({ key: of, wallet }: Requirement): Hex.Hex =>
  Words.call(requireSelector, [Words.address(wallet), Words.bytes32(of)])

/** The wallet's calldata: `execute` of the call, or a batch with its links. */
export const callData = (ledger: Address, call: WalletCalls.Call, { records, requires }: Links): Hex.Hex => {
  if (records === null && requires === null) return WalletCalls.execute(call.target, call.value, call.data)
  const own = (data: Hex.Hex): WalletCalls.Call => ({ target: ledger, value: 0n, data })
  return WalletCalls.executeBatch([
    ...(requires === null ? [] : [own(requireRecorded(requires))]),
    call,
    ...(records === null ? [] : [own(record(records))])
  ])
}

/** The return data of the call itself, from the wallet's return data; otherwise null. */
export const callResult = ({ records, requires }: Links, returnData: Hex.Hex): Hex.Hex | null => {
  if (records === null && requires === null) {
    const only = WalletCalls.decodeExecuteResult(returnData)
    return only._tag === "Success" ? only.success : null
  }
  const all = WalletCalls.decodeExecuteBatchResult(returnData)
  return all._tag === "Success" ? (all.success[requires === null ? 0 : 1] ?? null) : null
}

/** Every key that a wallet's calldata records or requires by this ledger, anywhere in its batch. */
export const linksOf = (
  ledger: Address,
  callData: Hex.Hex
): { readonly records: ReadonlyArray<Hex.Bytes32>; readonly requires: ReadonlyArray<Requirement> } => {
  const records: Array<Hex.Bytes32> = []
  const requires: Array<Requirement> = []
  for (const { data, target } of WalletCalls.read(callData)) {
    if (target !== ledger) continue
    const cursor = Words.read(Hex.unsafe(`0x${data.slice(10)}`))
    if (data.startsWith(recordSelector)) records.push(Words.readBytes32(cursor, 0))
    else if (data.startsWith(requireSelector))
      requires.push({ wallet: Words.readAddress(cursor, 0), key: Words.readBytes32(cursor, 32) })
  }
  return { records, requires }
}

/** The key that the ledger reported as not recorded; null: another revert. */
export const failedKey = (revertData: Hex.Hex): Hex.Bytes32 | null =>
  revertData.startsWith(dependencyFailed) && Hex.size(revertData) === 36
    ? Hex.unsafe32(`0x${revertData.slice(10)}`)
    : null

/** Whether calldata of a wallet makes only this call, not counting links to other ops by the ledger. */
export const makes = (callData: Hex.Hex, call: WalletCalls.Call | null, ledger: Address | null): boolean => {
  if (call === null) return callData === Hex.empty
  const all = WalletCalls.read(callData)
  const own = ledger === null || all.length === 1 ? all : all.filter((each) => !isLink(each, ledger))
  const [only] = own
  return (
    own.length === 1 &&
    only !== undefined &&
    only.target === call.target &&
    only.value === call.value &&
    only.data === call.data
  )
}

/** Whether the call records or requires a key of this ledger. */
export const isLink = (call: WalletCalls.Call, ledger: Address): boolean => {
  const { records, requires } = linksOf(ledger, WalletCalls.execute(call.target, call.value, call.data))
  return call.value === 0n && records.length + requires.length > 0
}
