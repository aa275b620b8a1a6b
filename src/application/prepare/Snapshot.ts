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
import { type Failure, invalid, unprocessable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import type { Block } from "../ports/chain/ChainRpc.js"
import * as CalledContracts from "./estimate/CalledContracts.js"
import type { OpContext } from "./OpContext.js"
import * as Wallets from "./wallets/Wallets.js"

/** What one look at the chain tells before anything is measured. */
export interface Snapshot {
  readonly block: Block
  readonly prices: Fees.FeePrices
  readonly entryPointCode: Hex
  readonly wallets: ReadonlyMap<Address.Address, Wallets.WalletState>
  /** Where calls with data go and there is no contract. */
  readonly codeless: ReadonlySet<Address.Address>
  /** Everybody passes for a passkey there; false too where none of the wallets has one. */
  readonly forgeable: boolean
  /** Gas that one transaction may have: the block's bound or the operator's. */
  readonly gasBound: bigint
  /** Of the EOA that submits, wei; null: it was not asked for. */
  readonly balance: bigint | null
}

const noBlock = () =>
  unprocessable("node_refused", [{ path: "settings.rpc", message: Reasons.text("nodeWithoutBlock") }])

const gasBoundOf = ({ gasLimit }: Block, { profile }: Connection): bigint =>
  BigInts.min(gasLimit, profile.caps.transactionGas)

/**
 * Everything that is read before the measurement of these calls, in one batch; of a recent block where that will do.
 * `passkeys`: as far as the request says, one of the wallets has them, or will. `submitter`: the EOA that is to pay. `wanted`:
 * wallets that are to be deployed.
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
    // A wallet that is not there makes no calls.
    const called = CalledContracts.of(calls, profile).filter((target) => !addresses.includes(target))
    const believes = P256Precompile.believesForgeries(chain)
    // Asked along with the rest where it is known that it matters.
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
      return yield* Effect.fail(
        invalid("unsupported_entry_point", [
          { path: "settings.entryPoint", message: "there is no code at this address on the chain" }
        ])
      )
    const prices = yield* Effect.fromResult(Prices.offered(profile, fees, buffers.price))
    const codeless = new Set(called.filter((_, index) => codes[index] === null))
    const some = [...wallets.values()].some(
      (state) => state._tag === "deployed" && Wallets.hasPasskeys(state.configuration)
    )
    const forgeable = forged ?? (some && (yield* Effect.mapError(believes, refusal(trust))))
    const gasBound = gasBoundOf(block, connection)
    return { block, prices, entryPointCode, wallets, codeless, forgeable, gasBound, balance }
  })

/** The same as it was told last; null: some of it was not, or the node asks for more than it may. */
export const lastSeen = (
  { buffers, connection, entryPoint, formula }: OpContext,
  addresses: ReadonlyArray<Address.Address>
): Effect.Effect<Snapshot | null, never, ChainFacts> =>
  Effect.gen(function* () {
    const { chain, profile } = connection
    const facts = yield* ChainFacts
    const wallets = Wallets.lastSeen(facts, chain, formula.initCode, addresses)
    const told = facts.lastSeen(chain)
    if (wallets === null || told === null) return null
    const { block, fees } = told
    const prices = Prices.offered(profile, fees, buffers.price)
    const code = yield* Effect.result(facts.code(chain, entryPoint))
    return Result.isFailure(prices) || Result.isFailure(code) || code.success === null
      ? null
      : {
          block,
          prices: prices.success,
          entryPointCode: code.success,
          wallets,
          codeless: new Set(),
          // The present look tells.
          forgeable: false,
          gasBound: gasBoundOf(block, connection),
          balance: null
        }
  })

/** The same at the block that is the latest now. */
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
 * Holds the implementation that the beacon reports against the operator's pin, and `settings.validator` against
 * the implementation's own.
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
      return yield* Effect.fail(unprocessable("implementation_changed"))
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
      return yield* Effect.fail(
        invalid("validator_mismatch", [
          {
            path: "settings.validator",
            message: reported === null ? "the implementation reports none" : `expected ${reported}`
          }
        ])
      )
  })

/** Seconds for which what the service signs is good. */
export const signatureLifeSeconds = 600

/** Last second at which an op that is signed now may be executed, by the chain's clock. */
export const validUntil = (block: Block): Effect.Effect<number> =>
  Effect.map(ChainTime.present(block), (now) => now + signatureLifeSeconds)

/**
 * The same of a creation. After a longer rest of the chain it is over when it is mined, which makes the block that the
 * next one needs: what is good until then would be refused in the simulation already, at the time of the latest block.
 */
export const deployableUntil = (block: Block): Effect.Effect<number> =>
  Effect.map(validUntil(block), (until) => Math.min(until, block.timestamp + Deployment.maxLifeSeconds))
