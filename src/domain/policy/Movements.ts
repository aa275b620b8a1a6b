import * as Result from "effect/Result"
import * as FunctionSignature from "../abi/FunctionSignature.js"
import * as Parameters from "../abi/Parameters.js"
import * as Values from "../abi/Values.js"
import * as Multicall from "../evm/Multicall.js"
import * as Address from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Uint from "../primitives/Uint.js"
import * as Ledger from "../wallet/Ledger.js"
import type * as WalletCalls from "../wallet/WalletCalls.js"

/**
 * Reads a wallet's calls: the assets that move, the amounts and the recipients.
 *
 * Use it to judge calls before they are signed. It knows the built-in functions only; a caller's definitions could give a
 * function another meaning. It reads canonical encodings only: contracts may decode other bytes in other ways.
 *
 * Gotchas:
 *
 * - A call beyond the bounds, or of a known function in another encoding, is a `call` without a selector, so that no rule
 *   that names selectors allows it.
 * - Value that passes through Multicall3 is a movement to Multicall3 and from there.
 */

export type Kind =
  | "native"
  | "erc20.transfer"
  | "erc20.approve"
  | "erc721.transfer"
  | "erc1155.transfer"
  | "approvalForAll"
  | "wallet.admin"
  | "deploy"
  | "call"
  | "sign.hash"
  | "sign.message"
  | "sign.typedData"

/** Typed data that is signed; null: its domain names none. */
export interface Document {
  readonly name: string | null
  readonly chainId: bigint | null
  readonly verifyingContract: Address.Address | null
  readonly primaryType: string
}

export interface Movement {
  readonly kind: Kind
  /** The contract that is called, the recipient of a call without data, or that of the document's domain; null: none. */
  readonly contract: Address.Address | null
  /** 4 bytes; null: no data, or data that is not read. */
  readonly selector: Hex.Hex | null
  /** Calldata of the call. */
  readonly data: Hex.Hex
  /** Null: it moves none, or for a document a token that its domain does not name. */
  readonly asset: Address.Address | "native" | null
  /** Recipient or spender; null: neither. */
  readonly to: Address.Address | null
  /** Least units, 0 of what moves none; null: without bound. */
  readonly amount: bigint | null
  /** Of signatures of typed data. */
  readonly document?: Document
}

export interface Reading {
  readonly movements: ReadonlyArray<Movement>
  /** Number of calls, batches opened. */
  readonly calls: number
}

/** Levels of batches that are opened. */
export const maxDepth = 4

/** Calls that are read, batches opened. */
export const maxCalls = 1_024

/** Uniswap's Permit2, at the same address on every chain. */
export const permit2: Address.Address = Address.unsafe("0x000000000022D473030F116dDEE9F6B43aC78BA3")

/** Effects of a known function. */
type Effects = ReadonlyArray<Pick<Movement, "kind" | "asset" | "to" | "amount">>

type Arguments = ReadonlyArray<Values.Json>

interface Known {
  readonly signature: FunctionSignature.FunctionSignature
  readonly effects: (args: Arguments, contract: Address.Address) => Effects
}

const addressOf = (value: Values.Json | undefined): Address.Address => Address.unsafe(String(value))
const amountOf = (value: Values.Json | undefined): bigint => BigInt(String(value))
const listOf = (value: Values.Json | undefined): Arguments => (Array.isArray(value) ? value : [])

/** Functions by their selectors. Tuples are without names, so that their values are lists. */
const table = (functions: Readonly<Record<string, Known["effects"]>>): ReadonlyMap<string, Known> =>
  new Map(
    Object.entries(functions).flatMap(([text, effects]) => {
      const signature = Result.getOrNull(FunctionSignature.parse(text))
      return signature?.selector == null ? [] : [[signature.selector, { signature, effects }] as const]
    })
  )

const move =
  (kind: Kind, to: number, amount: number): Known["effects"] =>
  (args, contract) => [{ kind, asset: contract, to: addressOf(args[to]), amount: amountOf(args[amount]) }]

const transfer = (to: number, amount: number) => move("erc20.transfer", to, amount)
const approve = (to: number, amount: number) => move("erc20.approve", to, amount)

const oneOf =
  (to: number): Known["effects"] =>
  (args, contract) => [{ kind: "erc721.transfer", asset: contract, to: addressOf(args[to]), amount: 1n }]

const tokens = table({
  "transfer(address,uint256)": transfer(0, 1),
  "transferFrom(address,address,uint256)": transfer(1, 2),
  "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)":
    transfer(1, 2),
  "transferWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)": transfer(1, 2),
  "receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,uint8,bytes32,bytes32)": transfer(
    1,
    2
  ),
  "receiveWithAuthorization(address,address,uint256,uint256,uint256,bytes32,bytes)": transfer(1, 2),
  "approve(address,uint256)": approve(0, 1),
  "increaseAllowance(address,uint256)": approve(0, 1),
  "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)": approve(1, 2),
  "permit(address,address,uint256,uint256,bytes)": approve(1, 2),
  // DAI's: all or nothing.
  "permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)": (args, contract) => [
    {
      kind: "erc20.approve",
      asset: contract,
      to: addressOf(args[1]),
      amount: args[4] === true ? Uint.max(256) : 0n
    }
  ],
  "safeTransferFrom(address,address,uint256)": oneOf(1),
  "safeTransferFrom(address,address,uint256,bytes)": oneOf(1),
  "safeTransferFrom(address,address,uint256,uint256,bytes)": move("erc1155.transfer", 1, 3),
  "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)": (args, contract) => [
    {
      kind: "erc1155.transfer",
      asset: contract,
      to: addressOf(args[1]),
      amount: listOf(args[3]).reduce<bigint>((sum, each) => sum + amountOf(each), 0n)
    }
  ],
  "setApprovalForAll(address,bool)": (args, contract) => [
    {
      kind: "approvalForAll",
      asset: contract,
      to: addressOf(args[0]),
      amount: args[1] === true ? null : 0n
    }
  ]
})

/** A grant of Permit2: token, amount, expiration, nonce. */
const granted = (details: Values.Json | undefined, spender: Values.Json | undefined): Effects[number] => {
  const [token, amount] = listOf(details)
  return { kind: "erc20.approve", asset: addressOf(token), to: addressOf(spender), amount: amountOf(amount) }
}

/** A transfer of Permit2: from, to, amount, token. */
const moved = ([, to, amount, token]: Arguments): Effects[number] => ({
  kind: "erc20.transfer",
  asset: addressOf(token),
  to: addressOf(to),
  amount: amountOf(amount)
})

const permits = table({
  "approve(address,address,uint160,uint48)": ([token, spender, amount]) => [
    granted([token ?? "", amount ?? ""], spender)
  ],
  "permit(address,((address,uint160,uint48,uint48),address,uint256),bytes)": ([, single]) => {
    const [details, spender] = listOf(single)
    return [granted(details, spender)]
  },
  "permit(address,((address,uint160,uint48,uint48)[],address,uint256),bytes)": ([, batch]) => {
    const [details, spender] = listOf(batch)
    return listOf(details).map((each) => granted(each, spender))
  },
  "transferFrom(address,address,uint160,address)": (args) => [moved(args)],
  "transferFrom((address,address,uint160,address)[])": ([all]) =>
    listOf(all).map((each) => moved(listOf(each)))
})

const admin: Known["effects"] = () => [{ kind: "wallet.admin", asset: null, to: null, amount: 0n }]

/** Functions that only the wallet itself may call. */
const ofWallet = table({
  "setConfig((uint8,uint8,address[],(bytes32,bytes32)[]))": admin,
  "setRecovery(address,uint48)": ([to]) => [
    { kind: "wallet.admin", asset: null, to: addressOf(to), amount: 0n }
  ],
  "cancelRecovery()": admin,
  // Out of the wallet's deposit at an EntryPoint.
  "withdrawTo(address,address,uint256)": ([, to, amount]) => [
    { kind: "wallet.admin", asset: "native", to: addressOf(to), amount: amountOf(amount) }
  ]
})

/** Calls that a known batch makes. */
interface Batch {
  readonly signature: FunctionSignature.FunctionSignature
  readonly callsOf: (args: Arguments, contract: Address.Address) => ReadonlyArray<WalletCalls.Call>
}

const batch = (text: string, callsOf: Batch["callsOf"]): ReadonlyArray<readonly [string, Batch]> => {
  const signature = Result.getOrNull(FunctionSignature.parse(text))
  return signature?.selector == null ? [] : [[signature.selector, { signature, callsOf }]]
}

const callOf = (
  target: Values.Json | undefined,
  value: bigint,
  data: Values.Json | undefined
): WalletCalls.Call => ({
  target: addressOf(target),
  value,
  data: Hex.unsafe(String(data))
})

/** Calls of a target and data, with or without a flag between them. */
const plain = (calls: Values.Json | undefined) =>
  listOf(calls).map((each) => {
    const members = listOf(each)
    return callOf(members[0], 0n, members.at(-1))
  })

const execute = new Map([
  ...batch("execute(address,uint256,bytes)", ([target, value, data]) => [
    callOf(target, amountOf(value), data)
  ]),
  ...batch("executeBatch((address,uint256,bytes)[])", ([calls]) =>
    listOf(calls).map((each) => {
      const [target, value, data] = listOf(each)
      return callOf(target, amountOf(value), data)
    })
  )
])

const multicall3 = new Map([
  ...batch("aggregate((address,bytes)[])", ([calls]) => plain(calls)),
  ...batch("blockAndAggregate((address,bytes)[])", ([calls]) => plain(calls)),
  ...batch("tryAggregate(bool,(address,bytes)[])", ([, calls]) => plain(calls)),
  ...batch("tryBlockAndAggregate(bool,(address,bytes)[])", ([, calls]) => plain(calls)),
  ...batch("aggregate3((address,bool,bytes)[])", ([calls]) => plain(calls)),
  ...batch("aggregate3Value((address,bool,uint256,bytes)[])", ([calls]) =>
    listOf(calls).map((each) => {
      const [target, , value, data] = listOf(each)
      return callOf(target, amountOf(value), data)
    })
  )
])

/** The contract calls itself, as its caller. */
const multicall = new Map(
  batch("multicall(bytes[])", ([calls], contract) => listOf(calls).map((data) => callOf(contract, 0n, data)))
)

/** Arguments of calldata; null: it is not their canonical encoding. */
const read = (signature: FunctionSignature.FunctionSignature, data: Hex.Hex): Arguments | null => {
  const args = Result.getOrNull(
    Values.decode(signature.inputs, Hex.unsafe(`0x${data.slice(10)}`), { maxValues: Values.maxValues })
  )
  if (args === null) return null
  // A parameter that is a boolean is given as text.
  const given = args.map((each) => (typeof each === "boolean" ? String(each) : each))
  return Result.getOrNull(Parameters.encodeCall(signature, given)) === data ? args : null
}

/** Batch function of a contract; `isSelf`: the wallet calls itself. */
const batchOf = (selector: Hex.Hex | null, contract: Address.Address, isSelf: boolean): Batch | undefined => {
  if (selector === null) return undefined
  const own = isSelf ? execute.get(selector) : undefined
  return own ?? (contract === Multicall.address ? multicall3 : multicall).get(selector)
}

/** Known function of a contract. */
const knownOf = (selector: Hex.Hex | null, contract: Address.Address, isSelf: boolean): Known | undefined => {
  if (selector === null) return undefined
  const own = isSelf ? ofWallet : contract === permit2 ? permits : undefined
  return own?.get(selector) ?? tokens.get(selector)
}

/** The caller, and the contract of calls that the service itself adds. */
export interface Context {
  readonly wallet: Address.Address
  /** The OperationLedger; null: there is none. */
  readonly ledger: Address.Address | null
}

/** Reads calls in their order. A call of the wallet to itself is read as the wallet executes it. */
export const of = ({ ledger, wallet }: Context, calls: ReadonlyArray<WalletCalls.Call>): Reading => {
  const movements: Array<Movement> = []
  let count = 0
  /** Calls that were seen, read or not. */
  let seen = calls.length

  const readAll = (all: ReadonlyArray<WalletCalls.Call>, sender: Address.Address, depth: number): void => {
    for (const each of all) readOne(each, sender, depth)
  }

  /** Opens a batch; false: its encoding, its depth or its size prevents that. */
  const open = (
    found: Batch,
    { data, target }: WalletCalls.Call,
    sender: Address.Address,
    depth: number
  ): boolean => {
    const args = depth < maxDepth ? read(found.signature, data) : null
    if (args === null) return false
    const inner = found.callsOf(args, target)
    if (inner.length === 0 || seen + inner.length - 1 > maxCalls) return false
    seen += inner.length - 1
    readAll(inner, sender, depth + 1)
    return true
  }

  const readOne = (call: WalletCalls.Call, sender: Address.Address, depth: number): void => {
    const { data, target, value } = call
    if (ledger !== null && Ledger.isLink(call, ledger)) return
    const selector = Hex.size(data) < 4 ? null : Hex.slice(data, 0, 4)
    const add = (effect: Effects[number], named = selector) =>
      movements.push({ ...effect, contract: target, selector: named, data })
    const other = (named: Hex.Hex | null) => {
      count += 1
      add({ kind: "call", asset: null, to: null, amount: 0n }, named)
    }
    if (value > 0n || data === Hex.empty) add({ kind: "native", asset: "native", to: target, amount: value })
    if (data === Hex.empty) {
      count += 1
      return
    }
    const isSelf = target === wallet && sender === wallet
    const found = batchOf(selector, target, isSelf)
    if (found !== undefined) {
      const isOther = target === Multicall.address
      // Multicall3 is another sender: a rule about calls must allow it as well.
      if (isOther) add({ kind: "call", asset: null, to: null, amount: 0n })
      if (!open(found, call, isOther ? target : sender, depth)) other(null)
      return
    }
    const known = knownOf(selector, target, isSelf)
    const args = known === undefined ? null : read(known.signature, data)
    const effects = args === null ? [] : (known?.effects(args, target) ?? [])
    if (effects.length === 0) other(known === undefined ? selector : null)
    else count += 1
    for (const effect of effects) add(effect)
  }

  readAll(calls, wallet, 0)
  return { movements, calls: count }
}
