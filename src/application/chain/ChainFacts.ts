import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../domain/primitives/Hex.js"
import * as Keccak from "../../domain/primitives/Keccak.js"
import { Lru } from "../../domain/primitives/Lru.js"
import * as WalletCalls from "../../domain/wallet/WalletCalls.js"
import type * as WalletConfig from "../../domain/wallet/WalletConfig.js"
import type {
  Block,
  Call,
  CallResult,
  ChainClient,
  ChainRpcError,
  NetworkFees,
  StateOverride
} from "../ports/chain/ChainRpc.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"
import { NodeCache } from "./NodeCache.js"

/**
 * Facts that never change on a chain, queried once per node. The key is the client, that is the node's URL and its
 * author, never the chain id: one caller's node decides nothing for another.
 */
export interface ChainFacts {
  /**
   * A contract's runtime code; null while there is none. A delegation (EIP-7702) can be revoked, so it is never cached.
   * `recent`: for contracts that may disappear by SELFDESTRUCT or with their block, reuses code seen less than
   * `codeMillis` ago.
   */
  readonly code: (
    chain: ChainClient,
    address: Address,
    when?: "recent"
  ) => Effect.Effect<Hex | null, ChainRpcError>
  /** The code that `initCode` deploys; null when it reverts. */
  readonly deployedCode: (chain: ChainClient, initCode: Hex) => Effect.Effect<Hex | null, ChainRpcError>
  /**
   * The last configuration seen at an address with the code that `initCode` deploys; null: none was seen. The code may
   * have disappeared with its block; then the address does not answer as that code does.
   */
  readonly wallet: (chain: ChainClient, address: Address, initCode: Hex) => WalletConfig.Configuration | null
  readonly noteWallet: (
    chain: ChainClient,
    address: Address,
    initCode: Hex,
    configuration: WalletConfig.Configuration
  ) => void
  /** The result of `validator()` of a wallet implementation. */
  readonly validatorOf: (
    chain: ChainClient,
    implementation: Address,
    codeHash: Bytes32
  ) => Effect.Effect<Hex | null, ChainRpcError>
  /**
   * The latest block, null where there is none. `recent`: reuses a block that was the node's latest less than
   * `recentMillis` ago.
   */
  readonly block: (chain: ChainClient, when: "now" | "recent") => Effect.Effect<Block | null, ChainRpcError>
  /** The next block's fees per gas unit. `recent`: reuses an answer less than `recentFeesMillis` old. */
  readonly fees: (chain: ChainClient, when?: "recent") => Effect.Effect<NetworkFees, ChainRpcError>
  /** An EOA's balance, wei. `recent`: reuses an answer less than `recentMillis` old. */
  readonly balance: (
    chain: ChainClient,
    address: Address,
    when?: "recent"
  ) => Effect.Effect<bigint, ChainRpcError>
  /**
   * The block and the fees last read from this node, at any age; null: one of them was not read. Use it only for
   * queries sent together with those for the current values, never for data that leaves the process.
   */
  readonly lastSeen: (chain: ChainClient) => LastSeen | null
  /** Whether a node has shown that it takes no state overrides. */
  readonly isPlain: (chain: ChainClient) => boolean
  readonly notePlain: (chain: ChainClient) => Effect.Effect<void>
  /**
   * A call with as much gas as the node grants. Nodes cut or refuse an excessive limit; after a refusal this and later
   * calls to the node use a lower one.
   */
  readonly generousCall: (
    chain: ChainClient,
    call: Omit<Call, "gas">,
    overrides: ReadonlyMap<Address, StateOverride>
  ) => Effect.Effect<CallResult, ChainRpcError>
}

export interface LastSeen {
  readonly block: Block
  readonly fees: NetworkFees
}

export const ChainFacts: Context.Key<ChainFacts, ChainFacts> = Context.Service("castellan/ChainFacts")

/** Gas limits to try: more than any bundle needs, then the default bounds of Geth and Reth, then less. */
const callGas = [400_000_000n, 50_000_000n, 25_000_000n, 10_000_000n] as const

/** Refusals of a gas limit as too high (Reth "gas too high", Besu "exceeds gas cap"), not as too low. */
const tooMuchGas = /gas.{0,40}(?:too high|too large|exceed|above|cap\b|max|limit)|exceed.{0,40}gas/i

/** Age up to which the latest block serves purposes that need no exact time, milliseconds. */
export const recentMillis = 10_000

/** Age up to which fees serve a transaction whose ops were priced by them, milliseconds. */
export const recentFeesMillis = 250

/** Age up to which a foreign contract that was seen counts as present, milliseconds. */
export const codeMillis = 60_000

/** Prefix of the code of an EOA with a delegation, and of no other code. */
const delegation = "0xef0100"

/** Memory limit for all nodes' facts. */
const maxBytes = 32 * 1_024 * 1_024

/** Memory limit for the values that nodes share: accounts with clients of their own read the same contracts. */
const sharedBytes = 1_024 * 1_024

/** Memory of a fact in addition to its digits: its key and its entry. */
const factBytes = 512

interface Fact {
  readonly value: Hex
  /** Time of the answer, by `MonotonicTime`. */
  readonly at: number
}

interface Wallet {
  readonly initCode: Hex
  readonly configuration: WalletConfig.Configuration
}

/** Memory limit for all nodes' wallets. */
const mostWalletBytes = 16 * 1_024 * 1_024

/** Memory of a wallet's entry, without its code, which all entries share. */
const walletBytes = ({ configuration: { config } }: Wallet): number =>
  384 + 96 * config.owners.length + 256 * config.passkeys.length

/** Memory limit for all nodes' EOA balances, and the size of one entry. */
const mostBalances = { bytes: 1_024 * 1_024, entry: 256 }

const latest = (): Pick<ChainFacts, "balance" | "block" | "fees" | "lastSeen"> => {
  const blocks = new WeakMap<ChainClient, { readonly block: Block; readonly at: number }>()
  const lastFees = new WeakMap<ChainClient, { readonly fees: NetworkFees; readonly at: number }>()
  const balances = new NodeCache<{ readonly wei: bigint; readonly at: number }>(
    mostBalances.bytes,
    () => mostBalances.entry
  )
  return {
    block: (chain, when) =>
      Effect.flatMap(MonotonicTime.millis, (now) => {
        const known = blocks.get(chain)
        if (when === "recent" && known !== undefined && now < known.at + recentMillis)
          return Effect.succeed(known.block)
        return Effect.tap(chain.block("latest"), (block) =>
          Effect.sync(() => {
            if (block !== null) blocks.set(chain, { block, at: now })
          })
        )
      }),
    fees: (chain, when) =>
      Effect.flatMap(MonotonicTime.millis, (at) => {
        const known = lastFees.get(chain)
        if (when === "recent" && known !== undefined && at < known.at + recentFeesMillis)
          return Effect.succeed(known.fees)
        return Effect.tap(chain.fees, (fees) => Effect.sync(() => void lastFees.set(chain, { fees, at })))
      }),
    balance: (chain, address, when) =>
      Effect.flatMap(MonotonicTime.millis, (at) => {
        const known = balances.get(chain, address)
        if (when === "recent" && known !== undefined && at < known.at + recentMillis)
          return Effect.succeed(known.wei)
        return Effect.tap(chain.balance(address), (wei) =>
          Effect.sync(() => balances.set(chain, address, { wei, at }))
        )
      }),
    lastSeen: (chain) => {
      const block = blocks.get(chain)?.block
      const fees = lastFees.get(chain)?.fees
      return block === undefined || fees === undefined ? null : { block, fees }
    }
  }
}

export const make = (): ChainFacts => {
  const wallets = new NodeCache<Wallet>(mostWalletBytes, walletBytes)
  const facts = new NodeCache<Fact>(maxBytes, ({ value }) => factBytes + value.length)
  const shared = new Lru<Hex, Hex>(sharedBytes, ({ length }) => length)
  /** Number of `callGas` steps that a node has refused. */
  const refusals = new WeakMap<ChainClient, number>()
  const plain = new WeakSet<ChainClient>()

  const generousCall: ChainFacts["generousCall"] = (chain, call, overrides) =>
    Effect.suspend(() => {
      const step = refusals.get(chain) ?? 0
      const gas = callGas[step] ?? callGas[0]
      return Effect.catchIf(
        chain.call({ ...call, gas }, overrides),
        ({ message, reason }) =>
          reason === "rejected" && step + 1 < callGas.length && tooMuchGas.test(message),
        () => {
          refusals.set(chain, Math.max(step + 1, refusals.get(chain) ?? 0))
          return generousCall(chain, call, overrides)
        }
      )
    })

  const once = (
    chain: ChainClient,
    key: string,
    ask: Effect.Effect<Hex | null, ChainRpcError>,
    lifeMillis = Number.POSITIVE_INFINITY
  ) =>
    Effect.flatMap(MonotonicTime.millis, (at) => {
      const known = facts.get(chain, key)
      if (known !== undefined && at < known.at + lifeMillis) return Effect.succeed(known.value)
      return Effect.tap(ask, (value) =>
        Effect.sync(() => {
          if (value === null || value.startsWith(delegation)) facts.delete(chain, key)
          else {
            const own = shared.get(value) ?? value
            shared.set(own, own)
            facts.set(chain, key, { value: own, at })
          }
        })
      )
    })

  return {
    generousCall,
    ...latest(),
    isPlain: (chain) => plain.has(chain),
    notePlain: (chain) => Effect.sync(() => void plain.add(chain)),
    code: (chain, address, when) =>
      once(
        chain,
        `code ${address}`,
        Effect.map(chain.code(address), (code) => (code === "0x" ? null : code)),
        when === "recent" ? codeMillis : undefined
      ),
    deployedCode: (chain, initCode) =>
      once(
        chain,
        `deployed ${Keccak.hash(initCode)}`,
        Effect.map(chain.call({ data: initCode }), (result) =>
          result.success && result.data !== "0x" ? result.data : null
        )
      ),
    wallet: (chain, address, initCode) => {
      const known = wallets.get(chain, address)
      return known?.initCode === initCode ? known.configuration : null
    },
    noteWallet: (chain, address, initCode, configuration) =>
      wallets.set(chain, address, { initCode, configuration }),
    validatorOf: (chain, implementation, codeHash) =>
      once(
        chain,
        `validator ${implementation} ${codeHash}`,
        Effect.map(chain.call({ to: implementation, data: WalletCalls.validator }), (result) =>
          result.success ? result.data : null
        )
      )
  }
}
