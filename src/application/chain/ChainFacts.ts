import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../domain/primitives/Hex.js"
import * as Keccak from "../../domain/primitives/Keccak.js"
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
 * What never changes on a chain, asked once per node. The key is the client, that is the node's URL and who
 * named it, never the chain id: one caller's node decides nothing for another.
 */
export interface ChainFacts {
  /**
   * Runtime code of a contract; null while there is none. A delegation (EIP-7702) can be taken back: it is asked for anew.
   * `recent`: of a contract that is not known to stay, and may go by SELFDESTRUCT or with its block: code that was seen less
   * than `codeMillis` ago.
   */
  readonly code: (
    chain: ChainClient,
    address: Address,
    when?: "recent"
  ) => Effect.Effect<Hex | null, ChainRpcError>
  /** The code that `initCode` leaves at an address; null when it reverts. */
  readonly deployedCode: (chain: ChainClient, initCode: Hex) => Effect.Effect<Hex | null, ChainRpcError>
  /**
   * The configuration that was last seen at an address where the code that `initCode` leaves was seen; null: it was not.
   * The code may have gone with its block: then what stands there does not answer as that code does.
   */
  readonly wallet: (chain: ChainClient, address: Address, initCode: Hex) => WalletConfig.Configuration | null
  readonly noteWallet: (
    chain: ChainClient,
    address: Address,
    initCode: Hex,
    configuration: WalletConfig.Configuration
  ) => void
  /** What `validator()` of a wallet implementation answers. */
  readonly validatorOf: (
    chain: ChainClient,
    implementation: Address,
    codeHash: Bytes32
  ) => Effect.Effect<Hex | null, ChainRpcError>
  /**
   * The latest block, null where there is none; `recent`: or one that was the latest when this node was asked less than
   * `recentMillis` ago.
   */
  readonly block: (chain: ChainClient, when: "now" | "recent") => Effect.Effect<Block | null, ChainRpcError>
  /** What the next block asks for a gas unit; `recent`: or what was told less than `recentFeesMillis` ago. */
  readonly fees: (chain: ChainClient, when?: "recent") => Effect.Effect<NetworkFees, ChainRpcError>
  /** Of an EOA, wei; `recent`: or what was told less than `recentMillis` ago. */
  readonly balance: (
    chain: ChainClient,
    address: Address,
    when?: "recent"
  ) => Effect.Effect<bigint, ChainRpcError>
  /**
   * The block and the fees that this node told last, however long ago; null: it told none. Good for what is asked along
   * with the present ones, and for nothing that leaves the process.
   */
  readonly lastSeen: (chain: ChainClient) => LastSeen | null
  /** Whether a node has shown that it takes no state overrides, and that it has. */
  readonly isPlain: (chain: ChainClient) => boolean
  readonly notePlain: (chain: ChainClient) => Effect.Effect<void>
  /**
   * A call with as much gas as the node grants. Nodes cut what is too much for them, or refuse the call: then it is
   * less, for this node also from now on.
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

/** What is offered to nodes: more than any bundle needs, then the bounds that Geth and Reth have by default, and less. */
const callGas = [400_000_000n, 50_000_000n, 25_000_000n, 10_000_000n] as const

/** As nodes word it, Reth "gas too high" say, Besu "exceeds gas cap". Not that too little was given. */
const tooMuchGas = /gas.{0,40}(?:too high|too large|exceed|above|cap\b|max|limit)|exceed.{0,40}gas/i

/** For so long the latest block is good for what does not go by it to the second. */
export const recentMillis = 10_000

/** For so long fees are good for a transaction whose ops were priced by them. */
export const recentFeesMillis = 250

/** For so long a contract that was seen counts as there, where it is anybody's. */
export const codeMillis = 60_000

/** What the code of an EOA with a delegation begins with, and no other code. */
const delegation = "0xef0100"

/** Of all facts of all nodes together. */
const maxBytes = 32 * 1_024 * 1_024

/** A fact beside its digits: its key, and how it is held. */
const factBytes = 512

interface Fact {
  readonly value: Hex
  /** When it was told, by `MonotonicTime`. */
  readonly at: number
}

interface Wallet {
  readonly initCode: Hex
  readonly configuration: WalletConfig.Configuration
}

/** Of the wallets of all nodes together. */
const mostWalletBytes = 16 * 1_024 * 1_024

/** Of a wallet's entry: its code is everybody's. */
const walletBytes = ({ configuration: { config } }: Wallet): number =>
  384 + 96 * config.owners.length + 256 * config.passkeys.length

/** Of EOAs of all nodes together. */
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
  /** How many of `callGas` a node has refused. */
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
          else facts.set(chain, key, { value, at })
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
