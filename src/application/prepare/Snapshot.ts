import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Fees from "../../domain/erc4337/gas/Fees.js"
import * as Address from "../../domain/primitives/Address.js"
import type { Bytes32, Hex } from "../../domain/primitives/Hex.js"
import * as Deployment from "../../domain/wallet/Deployment.js"
import type * as WalletCalls from "../../domain/wallet/WalletCalls.js"
import { ChainFacts } from "../chain/ChainFacts.js"
import * as ChainTime from "../chain/ChainTime.js"
import { type Connection, refusal } from "../chain/Connection.js"
import * as P256Precompile from "../chain/P256Precompile.js"
import * as Prices from "../chain/Prices.js"
import { type Failure, invalidAt, unprocessable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import type { Block } from "../ports/chain/ChainRpc.js"
import * as CalledContracts from "./estimate/CalledContracts.js"
import type { OpContext } from "./OpContext.js"
import * as Wallets from "./wallets/Wallets.js"

/**
 * Reads the state of the chain on which ops are prepared, and derives times from its block. Preparation, intake and
 * `SignMessage` use it.
 */

/** The state of the chain before a measurement. */
export interface Snapshot {
  readonly block: Block
  readonly prices: Fees.FeePrices
  /** The node's market; `prices` include the caller's buffer. */
  readonly market: Fees.Market
  readonly entryPointCode: Hex
  readonly wallets: ReadonlyMap<Address.Address, Wallets.WalletState>
  /** Targets of calls with data that have no code. */
  readonly codeless: ReadonlySet<Address.Address>
  /** The chain accepts forged passkey signatures; also false where none of the wallets has a passkey. */
  readonly forgeable: boolean
  /** Gas limit of one transaction: the block's or the operator's. */
  readonly gasBound: bigint
  /** Balance of the submitting EOA, wei; null: not requested. */
  readonly balance: bigint | null
}

/** The refusal of a node without blocks. */
export const noBlock = () =>
  unprocessable("node_refused", [{ path: "settings.rpc", message: Reasons.text("nodeWithoutBlock") }])

const gasBoundOf = ({ gasLimit }: Block, { profile }: Connection): bigint =>
  BigInts.min(gasLimit, profile.caps.transactionGas)

/**
 * Reads all state for a measurement of these calls in one batch; of a recent block where that suffices. `passkeys`: the
 * request says that one of the wallets has or will have passkeys. `submitter`: the paying EOA. `wanted`: wallets to
 * deploy.
 */
export const read = (
  { buffers, connection, entryPoint, formula }: OpContext,
  addresses: ReadonlyArray<Address.Address>,
  calls: ReadonlyArray<WalletCalls.Call>,
  when: "now" | "recent" = "now",
  passkeys = false,
  submitter: Address.Address | null = null,
  wanted: ReadonlySet<Address.Address> = new Set()
): Effect.Effect<Snapshot, Failure, ChainFacts> =>
  Effect.gen(function* () {
    const { chain, profile, trust } = connection
    const facts = yield* ChainFacts
    // A wallet as a target may not be deployed yet.
    const called = CalledContracts.of(calls, profile).filter((target) => !addresses.includes(target))
    const believes = P256Precompile.believesForgeries(chain)
    // Query it with the other reads where passkeys are known to matter.
    const early =
      passkeys ||
      addresses.some((address) => Wallets.hasPasskeys(facts.wallet(chain, address, formula.initCode)))
    const [block, fees, balance, entryPointCode, wallets, codes, forged] = yield* Effect.mapError(
      Effect.all(
        [
          facts.block(chain, when),
          facts.fees(chain),
          submitter === null ? Effect.succeed(null) : facts.balance(chain, submitter, "recent"),
          facts.code(chain, entryPoint),
          Wallets.read(facts, chain, formula.initCode, addresses, { wanted }),
          Effect.forEach(called, (target) => facts.code(chain, target, "recent"), {
            concurrency: "unbounded"
          }),
          early ? believes : Effect.succeed(null)
        ],
        { concurrency: "unbounded" }
      ),
      refusal(trust)
    )
    if (block === null) return yield* Effect.fail(noBlock())
    if (entryPointCode === null)
      return yield* invalidAt(
        "settings.entryPoint",
        "there is no code at this address on the chain",
        "unsupported_entry_point"
      )
    const prices = yield* Effect.fromResult(Prices.offer(profile, fees, buffers.price))
    const codeless = new Set(called.filter((_, index) => codes[index] === null))
    const some = [...wallets.values()].some(
      (state) => state._tag === "deployed" && Wallets.hasPasskeys(state.configuration)
    )
    const forgeable = forged ?? (some && (yield* Effect.mapError(believes, refusal(trust))))
    const gasBound = gasBoundOf(block, connection)
    return { block, prices, market: fees, entryPointCode, wallets, codeless, forgeable, gasBound, balance }
  })

/** The last snapshot, from cached answers only; null: a part is missing, or the node's prices exceed the caps. */
export const lastSeen = (
  { buffers, connection, entryPoint, formula }: OpContext,
  addresses: ReadonlyArray<Address.Address>
): Effect.Effect<Snapshot | null, never, ChainFacts> =>
  Effect.gen(function* () {
    const { chain, profile } = connection
    const facts = yield* ChainFacts
    const wallets = Wallets.lastSeen(facts, chain, formula.initCode, addresses)
    const lastSeen = facts.lastSeen(chain)
    if (wallets === null || lastSeen === null) return null
    const { block, fees } = lastSeen
    const prices = Prices.offer(profile, fees, buffers.price)
    const code = yield* Effect.result(facts.code(chain, entryPoint))
    return Result.isFailure(prices) || Result.isFailure(code) || code.success === null
      ? null
      : {
          block,
          prices: prices.success,
          market: fees,
          entryPointCode: code.success,
          wallets,
          codeless: new Set(),
          // The current snapshot decides.
          forgeable: false,
          gasBound: gasBoundOf(block, connection),
          balance: null
        }
  })

/** The snapshot with the chain's current latest block. */
export const atLatest = (
  { connection }: OpContext,
  snapshot: Snapshot
): Effect.Effect<Snapshot, Failure, ChainFacts> =>
  Effect.gen(function* () {
    const { chain, trust } = connection
    const block = yield* Effect.mapError((yield* ChainFacts).block(chain, "now"), refusal(trust))
    if (block === null) return yield* Effect.fail(noBlock())
    return { ...snapshot, block, gasBound: gasBoundOf(block, connection) }
  })

/**
 * Compares the implementation that the beacon reports with the operator's pin, and `settings.validator` with the
 * implementation's own.
 */
export const checkImplementation = (
  connection: Connection,
  implementation: { readonly address: Address.Address; readonly codeHash: Bytes32 } | null,
  validator: Address.Address | undefined
): Effect.Effect<void, Failure, ChainFacts> =>
  Effect.gen(function* () {
    const { chain, profile, trust } = connection
    const facts = yield* ChainFacts
    const pinned = profile.implementationCodeHash
    if (pinned !== null && pinned !== implementation?.codeHash)
      return yield* unprocessable("implementation_changed")
    if (validator === undefined) return
    const word =
      implementation === null
        ? null
        : yield* Effect.mapError(
            facts.validatorOf(chain, implementation.address, implementation.codeHash),
            refusal(trust)
          )
    const reported = word !== null && word.length === 66 ? Address.fromWord(word) : null
    if (reported !== validator)
      return yield* invalidAt(
        "settings.validator",
        reported === null ? "the implementation reports none" : `expected ${reported}`,
        "validator_mismatch"
      )
  })

/** Lifetime of the service's signatures, seconds. */
export const signatureLifeSeconds = 600

/** Last second at which an op signed now may be executed, by the chain's clock. */
export const validUntil = (block: Block): Effect.Effect<number> =>
  Effect.map(ChainTime.present(block), (now) => now + signatureLifeSeconds)

/**
 * Last second of a creation's authorisation. After a long gap between blocks, the simulation runs at the latest block's
 * time and would refuse a life longer than the factory allows. The authorisation may then be over when it is mined, but
 * that block ends the gap.
 */
export const deployableUntil = (block: Block): Effect.Effect<number> =>
  Effect.map(validUntil(block), (until) => Math.min(until, block.timestamp + Deployment.maxLifeSeconds))
