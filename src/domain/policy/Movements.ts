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

export const kinds = [
  "native",
  "erc20.transfer",
  "erc20.approve",
  "erc721.transfer",
  "erc1155.transfer",
  "approvalForAll",
  "wallet.admin",
  "deploy",
  "call",
  "sign.hash",
  "sign.message",
  "sign.typedData"
] as const

export type Kind = (typeof kinds)[number]

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

/** A movement of nothing: of no contract, and without a recipient. */
export const plain = (kind: Kind): Movement => ({
  kind,
  contract: null,
  selector: null,
  data: Hex.empty,
  asset: null,
  to: null,
  amount: 0n
})

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

export type Effect = Pick<Movement, "kind" | "asset" | "to" | "amount">

export const effect = (
  kind: Kind,
  asset: Movement["asset"],
  to: unknown,
  amount: Movement["amount"]
): Effect => ({ kind, asset, to: addressOf(to), amount })

type Arguments = ReadonlyArray<Values.Json>

type Read<A> = (args: Arguments, contract: Address.Address) => ReadonlyArray<A>

interface Known<A> {
  readonly signature: FunctionSignature.FunctionSignature
  readonly of: Read<A>
}

type Table<A> = ReadonlyMap<string, Known<A>>

const addressOf = (value: unknown): Address.Address => Address.unsafe(String(value))
const amountOf = (value: Values.Json | undefined): bigint => BigInt(String(value))
const listOf = (value: Values.Json | undefined): Arguments => (Array.isArray(value) ? value : [])

/** Functions by their selectors. Tuples are without names, so that their values are lists. */
const table = <A>(functions: Readonly<Record<string, Read<A>>>): Table<A> =>
  new Map(
    Object.entries(functions).flatMap(([text, of]) => {
      const signature = Result.getOrNull(FunctionSignature.parse(text))
      return signature?.selector == null ? [] : [[signature.selector, { signature, of }] as const]
    })
  )

const move =
  (kind: Kind, to: number, amount: number): Read<Effect> =>
  (args, contract) => [effect(kind, contract, args[to], amountOf(args[amount]))]

const transfer = (to: number, amount: number) => move("erc20.transfer", to, amount)
const approve = (to: number, amount: number) => move("erc20.approve", to, amount)

const one: Read<Effect> = ([, to], contract) => [effect("erc721.transfer", contract, to, 1n)]

/** All or nothing, as DAI's permits. */
export const allOf = (allowed: unknown): bigint => (allowed === true ? Uint.max(256) : 0n)

const tokens = table<Effect>({
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
  "permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)": ([, to, , , allowed], contract) => [
    effect("erc20.approve", contract, to, allOf(allowed))
  ],
  "safeTransferFrom(address,address,uint256)": one,
  "safeTransferFrom(address,address,uint256,bytes)": one,
  "safeTransferFrom(address,address,uint256,uint256,bytes)": move("erc1155.transfer", 1, 3),
  "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)": ([, to, , amounts], contract) => {
    const sum = listOf(amounts).reduce<bigint>((before, each) => before + amountOf(each), 0n)
    return [effect("erc1155.transfer", contract, to, sum)]
  },
  "setApprovalForAll(address,bool)": ([to, allowed], contract) => [
    effect("approvalForAll", contract, to, allowed === true ? null : 0n)
  ]
})

/** A grant of Permit2: token, amount, expiration, nonce. */
const granted = ([token, amount]: Arguments, spender: Values.Json | undefined): Effect =>
  effect("erc20.approve", addressOf(token), spender, amountOf(amount))

/** A transfer of Permit2: from, to, amount, token. */
const moved = ([, to, amount, token]: Arguments): Effect =>
  effect("erc20.transfer", addressOf(token), to, amountOf(amount))

const permits = table<Effect>({
  "approve(address,address,uint160,uint48)": ([token, spender, amount]) => [
    effect("erc20.approve", addressOf(token), spender, amountOf(amount))
  ],
  "permit(address,((address,uint160,uint48,uint48),address,uint256),bytes)": ([, single]) => {
    const [details, spender] = listOf(single)
    return [granted(listOf(details), spender)]
  },
  "permit(address,((address,uint160,uint48,uint48)[],address,uint256),bytes)": ([, batch]) => {
    const [details, spender] = listOf(batch)
    return listOf(details).map((each) => granted(listOf(each), spender))
  },
  "transferFrom(address,address,uint160,address)": (args) => [moved(args)],
  "transferFrom((address,address,uint160,address)[])": ([all]) =>
    listOf(all).map((each) => moved(listOf(each)))
})

const admin: Read<Effect> = () => [{ kind: "wallet.admin", asset: null, to: null, amount: 0n }]

/** Functions that only the wallet itself may call. */
const ofWallet = table<Effect>({
  "setConfig((uint8,uint8,address[],(bytes32,bytes32)[]))": admin,
  "setRecovery(address,uint48)": ([to]) => [effect("wallet.admin", null, to, 0n)],
  "cancelRecovery()": admin,
  // Out of the wallet's deposit at an EntryPoint.
  "withdrawTo(address,address,uint256)": ([, to, amount]) => [
    effect("wallet.admin", "native", to, amountOf(amount))
  ]
})

/** Calls as tuples that begin with the target and end with the data. `wei`: place of their value; absent: 0. */
const callsOf = (tuples: Values.Json | undefined, wei?: number): ReadonlyArray<WalletCalls.Call> =>
  listOf(tuples).map((tuple) => {
    const members = listOf(tuple)
    return {
      target: addressOf(members[0]),
      value: wei === undefined ? 0n : amountOf(members[wei]),
      data: Hex.unsafe(String(members.at(-1)))
    }
  })

const execute = table<WalletCalls.Call>({
  "execute(address,uint256,bytes)": (args) => callsOf([args], 1),
  "executeBatch((address,uint256,bytes)[])": ([calls]) => callsOf(calls, 1)
})

const multicall3 = table<WalletCalls.Call>({
  "aggregate((address,bytes)[])": ([calls]) => callsOf(calls),
  "blockAndAggregate((address,bytes)[])": ([calls]) => callsOf(calls),
  "tryAggregate(bool,(address,bytes)[])": ([, calls]) => callsOf(calls),
  "tryBlockAndAggregate(bool,(address,bytes)[])": ([, calls]) => callsOf(calls),
  "aggregate3((address,bool,bytes)[])": ([calls]) => callsOf(calls),
  "aggregate3Value((address,bool,uint256,bytes)[])": ([calls]) => callsOf(calls, 2)
})

/** The contract calls itself, as its caller. */
const multicall = table<WalletCalls.Call>({
  "multicall(bytes[])": ([calls], contract) => callsOf(listOf(calls).map((data) => [contract, data]))
})

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

/** Batch functions of a contract; `isSelf`: the wallet calls itself. */
const batchOf = (selector: string, contract: Address.Address, isSelf: boolean) =>
  (isSelf ? execute.get(selector) : undefined) ??
  (contract === Multicall.address ? multicall3 : multicall).get(selector)

/** Known functions of a contract. */
const knownOf = (selector: string, contract: Address.Address, isSelf: boolean) =>
  (isSelf ? ofWallet : contract === permit2 ? permits : undefined)?.get(selector) ?? tokens.get(selector)

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
    found: Known<WalletCalls.Call>,
    { data, target }: WalletCalls.Call,
    sender: Address.Address,
    depth: number
  ): boolean => {
    const args = depth < maxDepth ? read(found.signature, data) : null
    if (args === null) return false
    const inner = found.of(args, target)
    if (inner.length === 0 || seen + inner.length - 1 > maxCalls) return false
    seen += inner.length - 1
    readAll(inner, sender, depth + 1)
    return true
  }

  const readOne = (call: WalletCalls.Call, sender: Address.Address, depth: number): void => {
    const { data, target, value } = call
    if (ledger !== null && Ledger.isLink(call, ledger)) return
    const selector = Hex.size(data) < 4 ? null : Hex.slice(data, 0, 4)
    const add = (made: Effect, named = selector) =>
      movements.push({ ...made, contract: target, selector: named, data })
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
    const found = batchOf(selector ?? "", target, isSelf)
    if (found !== undefined) {
      const isOther = target === Multicall.address
      // Multicall3 is another sender: a rule about calls must allow it as well.
      if (isOther) add({ kind: "call", asset: null, to: null, amount: 0n })
      if (!open(found, call, isOther ? target : sender, depth)) other(null)
      return
    }
    const known = knownOf(selector ?? "", target, isSelf)
    const args = known === undefined ? null : read(known.signature, data)
    const effects = args === null ? [] : (known?.of(args, target) ?? [])
    if (effects.length === 0) other(known === undefined ? selector : null)
    else count += 1
    for (const each of effects) add(each)
  }

  readAll(calls, wallet, 0)
  return { movements, calls: count }
}
