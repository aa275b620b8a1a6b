import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import type { Version } from "../../domain/erc4337/EntryPoint.js"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import * as Multicall from "../../domain/evm/Multicall.js"
import * as Token from "../../domain/evm/Token.js"
import * as Movements from "../../domain/policy/Movements.js"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Uint from "../../domain/primitives/Uint.js"
import * as Words from "../../domain/primitives/Words.js"
import * as Ledger from "../../domain/wallet/Ledger.js"
import * as WalletCalls from "../../domain/wallet/WalletCalls.js"
import { ChainFacts } from "../chain/ChainFacts.js"
import * as Connection from "../chain/Connection.js"
import * as Funding from "../payers/Funding.js"
import type { Block, Call, ChainClient, ChainRpc, SimulatedCall } from "../ports/chain/ChainRpc.js"
import type { Preview, Shown } from "./Preview.js"

/**
 * Simulates ops' calls to preview what they would move.
 *
 * Each call comes from the EntryPoint, in order, so no op needs a signature, and none pays its fees. A node without
 * `eth_simulateV1` leaves the calldata, which the reader of spending rules reads.
 */

/** An op to preview. */
export interface Op {
  readonly index: number
  readonly wallet: Address.Address
  /** The wallet's calldata; links to other ops are left out. */
  readonly callData: Hex.Hex
  /** With its limits and prices; null: not prepared yet. */
  readonly op: UserOperation | null
}

/** The chain and the EntryPoint of ops. */
export interface Site {
  readonly connection: Connection.Connection
  readonly entryPoint: Address.Address
  readonly version: Version
  /** Decodes revert data for readers. */
  readonly revert: (data: Hex.Hex) => string
}

/** Most transfers and approvals of a request's ops together. */
export const mostEntries = 500

/** Most balances that are compared, and most tokens that are named. */
export const mostPairs = 32

/** An unused address, where the simulation puts code that returns the balance of the address in its calldata. */
const balanceReader = Address.unsafe(`0x${"ba1a".repeat(10)}`)
const overrides = new Map([[balanceReader, { code: Hex.unsafe("0x6000353160005260206000f3") }]])

/** More than a token takes to return a balance. */
const readingGas = 200_000n

type Change = Pick<Token.Transfer, "kind" | "token" | "to" | "amount" | "id"> & {
  /** Null: the calldata does not say. */
  readonly from: Address.Address | null
}
type Allowance = Omit<Token.Approval, "owner">

/** An op's effects before their check. */
interface Effects {
  readonly transfers: ReadonlyArray<Change>
  readonly approvals: ReadonlyArray<Allowance>
  /** Gas that the call uses; null: only its calldata was read. */
  readonly gas: bigint | null
}

const withoutLinks = (ledger: Address.Address | null, callData: Hex.Hex): Hex.Hex => {
  const calls = WalletCalls.read(callData)
  const own = calls.filter((call) => ledger === null || !Ledger.isLink(call, ledger))
  return own.length === calls.length ? callData : WalletCalls.executeBatch(own)
}

/** Without a gas limit: the op's own counts on storage that the ops before it in its transaction have touched. */
const callOf = ({ connection, entryPoint }: Site, { callData, wallet }: Op): Call => ({
  from: entryPoint,
  to: wallet,
  data: withoutLinks(connection.profile.ledger, callData)
})

const simulated = ({ wallet }: Op, { data }: Call, { gasUsed, logs }: SimulatedCall): Effects => ({
  transfers: logs.flatMap(Token.transfersIn),
  approvals: logs.flatMap((log) => {
    const approval = Token.approvalIn(log)
    return approval === null || approval.owner !== wallet ? [] : [approval]
  }),
  gas: BigInts.max(0n, gasUsed - Gas.intrinsic(data))
})

const transferKinds = {
  native: "native",
  "erc20.transfer": "erc20",
  "erc721.transfer": "erc721",
  "erc1155.transfer": "erc1155"
} as const
const approvalKinds = { "erc20.approve": "erc20", approvalForAll: "all" } as const

/** `transfer(address,uint256)`: the only known function of tokens whose sender is always the caller. */
const transfer = "0xa9059cbb"

const read = ({ connection }: Site, { callData, wallet }: Op): Effects => {
  const { ledger } = connection.profile
  const { movements } = Movements.of({ wallet, ledger }, WalletCalls.read(callData))
  const transfers: Array<Change> = []
  const approvals: Array<Allowance> = []
  // From the first call through Multicall3 on, the caller may be Multicall3.
  let isOwn = true
  for (const { amount, asset, contract, kind, selector, to } of movements) {
    if (kind === "call" && contract === Multicall.address) isOwn = false
    if (asset === null || to === null) continue
    if (kind in transferKinds)
      transfers.push({
        kind: transferKinds[kind as keyof typeof transferKinds],
        token: asset,
        from: isOwn && (kind === "native" || selector === transfer) ? wallet : null,
        to,
        amount: amount ?? 0n,
        id: null
      })
    if (kind in approvalKinds && asset !== "native")
      approvals.push({
        kind: approvalKinds[kind as keyof typeof approvalKinds],
        token: asset,
        spender: to,
        amount: amount ?? Uint.max(256)
      })
  }
  return { transfers, approvals, gas: null }
}

const silent = "the node did not simulate it"

/** The effects of each op; a text: its call fails. */
const effectsOf = (
  chain: ChainClient,
  site: Site,
  ops: ReadonlyArray<Op>,
  calls: ReadonlyArray<Call>,
  at: bigint
) =>
  chain.simulate(calls, { at, tracing: true }).pipe(
    Effect.map((results) =>
      ops.map((op, place): Effects | string => {
        const [result, call] = [results[place], calls[place]]
        if (result === undefined || call === undefined) return silent
        return result.success
          ? simulated(op, call, result)
          : `the call would revert: ${site.revert(result.data) || "without a reason"}`
      })
    ),
    Effect.catchIf(
      ({ reason }) => reason === "unsupported",
      () => Effect.succeed(ops.map((op): Effects | string => read(site, op)))
    )
  )

/** A wallet and a token that it may hold: `native`, ERC-20 or ERC-721. */
interface Pair {
  readonly wallet: Address.Address
  readonly token: Address.Address | "native"
}

const nameOf = ({ token, wallet }: Pair): string => `${wallet} ${token}`

/** The wallets' tokens by name, with each token of the op's transfers: contracts may lie about who takes part. */
const pairsOf = (ops: ReadonlyArray<readonly [Op, Effects]>): ReadonlyMap<string, Pair> => {
  const coins = ops.map(([{ wallet }]): Pair => ({ wallet, token: "native" }))
  const tokens = ops.flatMap(([{ wallet }, { transfers }]) =>
    transfers.flatMap(
      ({ kind, token }): ReadonlyArray<Pair> => (kind === "erc1155" ? [] : [{ wallet, token }])
    )
  )
  return new Map([...coins, ...tokens].map((pair) => [nameOf(pair), pair]))
}

/** Sums of the transfers by pair. */
const sumsOf = (all: ReadonlyArray<Effects>): ReadonlyMap<string, bigint> => {
  const sums = new Map<string, bigint>()
  const add = (wallet: Address.Address | null, token: Pair["token"], change: bigint) => {
    const name = `${wallet} ${token}`
    sums.set(name, (sums.get(name) ?? 0n) + change)
  }
  for (const { amount, from, kind, to, token } of all.flatMap(({ transfers }) => transfers)) {
    if (kind === "erc1155") continue
    add(from, token, -amount)
    add(to, token, amount)
  }
  return sums
}

const balanceOf = (from: Address.Address, { token, wallet }: Pair): Call =>
  token === "native"
    ? { from, to: balanceReader, data: Words.encode([Words.address(wallet)]), gas: readingGas }
    : { from, to: token, data: Token.calls.balanceOf(wallet), gas: readingGas }

/** Changes of the balances over all calls; a pair without two balances is absent. */
const changesOf = (
  chain: ChainClient,
  { entryPoint }: Site,
  calls: ReadonlyArray<Call>,
  pairs: ReadonlyArray<Pair>,
  at: bigint
): Effect.Effect<ReadonlyMap<string, bigint>> => {
  const asked = pairs.map((pair) => balanceOf(entryPoint, pair))
  const valueOf = (result: SimulatedCall | undefined) =>
    result?.success === true && Hex.size(result.data) === 32 ? BigInt(result.data) : null
  return chain.simulate([...asked, ...calls, ...asked], { at, overrides }).pipe(
    Effect.map((results) => {
      const changes = new Map<string, bigint>()
      for (const [place, pair] of pairs.entries()) {
        const before = valueOf(results[place])
        const after = valueOf(results[asked.length + calls.length + place])
        if (before !== null && after !== null) changes.set(nameOf(pair), after - before)
      }
      return changes
    }),
    Effect.orElseSucceed(() => new Map())
  )
}

const tokensOf = ({ approvals, transfers }: Effects): ReadonlySet<Address.Address> =>
  new Set([...transfers, ...approvals].flatMap(({ token }) => (token === "native" ? [] : [token])))

const labelOf = (chain: ChainClient, to: Address.Address) =>
  Effect.all([chain.call({ to, data: Token.calls.symbol }), chain.call({ to, data: Token.calls.decimals })], {
    concurrency: "unbounded"
  }).pipe(
    Effect.map(([symbol, decimals]) => Token.labelOf(symbol.data, decimals.data)),
    Effect.orElseSucceed(() => null),
    Effect.map((label) => (label === null ? [] : [[to, label] as const]))
  )

/** Its cost: at most, and at the block's base fee with the gas that the call used in the simulation. */
const feesOf = ({ version }: Site, { op, wallet }: Op, { baseFeePerGas }: Block, gas: bigint | null) => {
  if (op === null) return null
  const { callGasLimit, maxFeePerGas, maxPriorityFeePerGas } = op
  const most = Gas.requiredPrefund(version, op)
  const unused = gas === null ? 0n : BigInts.max(0n, callGasLimit - gas)
  const price = BigInts.min(maxFeePerGas, (baseFeePerGas ?? maxFeePerGas) + maxPriorityFeePerGas)
  const expected = maxFeePerGas === 0n ? 0n : (most / maxFeePerGas - unused) * price
  return {
    payer: Funding.paymasterOf(version, op) ?? wallet,
    most: most.toString(),
    expected: expected.toString()
  }
}

const show = (chain: ChainClient, site: Site, ops: ReadonlyArray<Op>) =>
  Effect.gen(function* () {
    const facts = yield* ChainFacts
    const block = yield* facts.block(chain, "now")
    if (block === null) return new Map(ops.map(({ index }) => [index, nothing(silent)]))
    const calls = ops.map((op) => callOf(site, op))
    const effects = yield* effectsOf(chain, site, ops, calls, block.number)
    const made = ops.flatMap((op, place): ReadonlyArray<readonly [Op, Effects]> => {
      const own = effects[place] ?? silent
      return typeof own === "string" ? [] : [[op, own]]
    })
    const all = made.map(([, own]) => own)
    const pairs = [...pairsOf(made.filter(([, { gas }]) => gas !== null)).values()].slice(0, mostPairs)
    const tokens = [...new Set(all.flatMap((own) => [...tokensOf(own)]))].slice(0, mostPairs)
    const [changes, labels] = yield* Effect.all(
      [
        pairs.length === 0
          ? Effect.succeed(new Map<string, bigint>())
          : changesOf(chain, site, calls, pairs, block.number),
        Effect.map(
          Effect.forEach(tokens, (each) => labelOf(chain, each), { concurrency: "unbounded" }),
          (found) => new Map(found.flat())
        )
      ],
      { concurrency: "unbounded" }
    )
    const sums = sumsOf(all)
    const netOf = (op: Op, own: Effects): Preview["net"] => {
      if (own.gas === null) return null
      const deltas = sumsOf([own])
      return [...pairsOf([[op, own]])].flatMap(([name, { token }]) => {
        const delta = deltas.get(name) ?? 0n
        const isVerified = changes.get(name) === (sums.get(name) ?? 0n)
        return delta === 0n && isVerified ? [] : [{ token, delta: delta.toString(), isVerified }]
      })
    }
    let room = mostEntries
    const shownOf = (op: Op, own: Effects | string): Shown => {
      if (typeof own === "string") return nothing(own)
      const { approvals, gas, transfers } = own
      const entries = transfers.length + approvals.length
      if (entries > room)
        return nothing(`expected at most ${mostEntries} transfers and approvals of the request`)
      room -= entries
      const preview: Preview = {
        basis: gas === null ? "calldata" : "simulation",
        block: gas === null ? null : block.number.toString(),
        transfers: transfers.map(({ amount, id, ...rest }) => ({
          ...rest,
          amount: amount.toString(),
          id: id === null ? null : id.toString()
        })),
        approvals: approvals.map(({ amount, kind, spender, token }) => ({
          kind,
          token,
          spender,
          amount: amount.toString(),
          isUnlimited: Token.isUnlimited(amount)
        })),
        net: netOf(op, own),
        fees: feesOf(site, op, block, gas),
        tokens: Object.fromEntries(
          [...tokensOf(own)].flatMap((each) => {
            const label = labels.get(each)
            return label === undefined ? [] : [[each, label]]
          })
        )
      }
      return { preview, previewError: null }
    }
    return new Map(ops.map((op, place) => [op.index, shownOf(op, effects[place] ?? silent)]))
  })

const nothing = (why: string): Shown => ({ preview: null, previewError: why })

/**
 * Previews the ops by index, executed in this order, on the operator's node, or the caller's where the operator has none.
 * Never fails: an op without a preview has the reason.
 */
export const of = (
  site: Site,
  ops: ReadonlyArray<Op>
): Effect.Effect<ReadonlyMap<number, Shown>, never, ChainFacts | ChainRpc> => {
  const { connection } = site
  const all = (why: string): ReadonlyMap<number, Shown> =>
    new Map(ops.map(({ index }) => [index, nothing(why)]))
  if (ops.length === 0) return Effect.succeed(new Map())
  return Effect.gen(function* () {
    const { chain, trust } =
      connection.trust === "operator" || connection.profile.rpc === null
        ? connection
        : yield* Connection.openOperators(connection.profile, "settings.rpc")
    return yield* Effect.mapError(show(chain, site, ops), Connection.refusal(trust))
  }).pipe(
    Effect.catch(({ details: [detail], message }) => Effect.succeed(all(detail?.message ?? message))),
    Effect.catchDefect((defect) =>
      Effect.as(Effect.logWarning("preview failed", defect), all("the preview failed"))
    )
  )
}
