import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Hex from "../../domain/evm/Hex.js"
import * as FailedOp from "../../domain/op/FailedOp.js"
import * as Outcome from "../../domain/op/Outcome.js"
import * as UserOperation from "../../domain/op/UserOperation.js"
import { type Bundle, type Bundler, BundlerError, type Landed, type OpOutcome } from "../ports/Bundler.js"
import {
  type Call,
  type CallResult,
  type ChainClient,
  ChainRpcError,
  type Receipt,
  type SimulatedCall
} from "../ports/ChainRpc.js"
import type { Journal, OpSettlement } from "../ports/Journal.js"
import * as Landings from "./Landings.js"
import type { Lanes } from "./Lanes.js"
import type { Releases } from "./Releases.js"
import type { Watcher } from "./Watcher.js"

interface Dependencies {
  readonly journal: Journal["Type"]
  readonly lanes: Lanes
  readonly watcher: Watcher
  readonly releases: Releases
  /** Done once nobody shall wait for a sent transaction any more. */
  readonly stopping: Deferred.Deferred<void>
}

const fail = (
  reason: BundlerError["reason"],
  message: string,
  rest: Partial<Pick<BundlerError, "txHash" | "missing" | "dropped">> = {}
) => new BundlerError({ reason, message, txHash: null, missing: 0n, dropped: new Map(), ...rest })

const nodeFailed = (error: ChainRpcError) => fail("nodeFailed", error.message)

/** `handleOps` of some ops of the bundle, as the submitting EOA would send it. */
const callOf = (bundle: Bundle, ops: Bundle["ops"]) => ({
  from: bundle.submitter.address,
  to: bundle.entryPoint,
  data: UserOperation.handleOps(
    bundle.version,
    ops.map(({ op }) => op),
    bundle.submitter.address
  ),
  gas: bundle.gasLimit
})

/** Which ops would not succeed, with their revert data, as far as this simulation says. */
const refusedIn = (
  bundle: Bundle,
  ops: Bundle["ops"],
  simulated: SimulatedCall | CallResult
): Map<Hex.Bytes32, Hex.Hex> => {
  const refused = new Map<Hex.Bytes32, Hex.Hex>()
  if (!simulated.success) {
    const index = FailedOp.opIndex(simulated.data)
    const named = index === null ? undefined : ops[index]
    if (named !== undefined) refused.set(named.userOpHash, simulated.data)
    return refused
  }
  if (!("logs" in simulated)) return refused
  const outcomes = Outcome.parse(bundle.entryPoint, simulated.logs)
  for (const { userOpHash } of ops) {
    const outcome = outcomes.get(userOpHash)
    if (outcome?.success !== true) refused.set(userOpHash, outcome?.revertData ?? Hex.empty)
  }
  return refused
}

/** JSON-RPC: method not found. */
const methodNotFound = -32601

/** One transaction on top of the latest block. A node without `eth_simulateV1` tells reverts only, and no logs. */
const simulateCall = (
  chain: ChainClient,
  call: Call
): Effect.Effect<SimulatedCall | CallResult, ChainRpcError> =>
  Effect.catchIf(
    Effect.flatMap(chain.simulate([call]), ([result]) =>
      result === undefined
        ? Effect.fail(
            new ChainRpcError({ reason: "notAnRpc", origin: chain.origin, message: "nothing was simulated" })
          )
        : Effect.succeed(result)
    ),
    (error) => error.rpcCode === methodNotFound,
    () => chain.call(call)
  )

/**
 * The whole bundle, simulated from the submitting EOA just before sending. Fails with `rejected` when an op would
 * not succeed. When a revert names no op, it is the last one of the shortest beginning of the bundle that reverts.
 */
const simulate = (bundle: Bundle): Effect.Effect<void, BundlerError> =>
  Effect.gen(function* () {
    const run = (ops: Bundle["ops"]) => simulateCall(bundle.chain, callOf(bundle, ops))
    const whole = yield* run(bundle.ops)
    const refused = refusedIn(bundle, bundle.ops, whole)
    if (!whole.success && refused.size === 0) {
      let [passing, reverting, data] = [0, bundle.ops.length, whole.data]
      while (reverting - passing > 1) {
        const middle = (passing + reverting) >> 1
        const part = yield* run(bundle.ops.slice(0, middle))
        if (part.success) passing = middle
        else [reverting, data] = [middle, part.data]
      }
      const blamed = bundle.ops[reverting - 1]
      if (blamed !== undefined) refused.set(blamed.userOpHash, data)
    }
    if (refused.size > 0)
      return yield* fail("rejected", "operations would fail in the bundle", { dropped: refused })
  }).pipe(Effect.catchTag("ChainRpcError", nodeFailed))

/** EIP-2681: the highest nonce that a transaction may have. */
const maxNonce = 2n ** 64n - 2n

/** What became of the bundle's ops; those that the receipt does not show are looked up wherever they landed. */
const outcomesOf = (
  bundle: Bundle,
  receipt: Receipt
): Effect.Effect<ReadonlyMap<Hex.Bytes32, OpOutcome>, ChainRpcError> => {
  const hashes = bundle.ops.map(({ userOpHash }) => userOpHash)
  const shown = Landings.inReceipt(bundle.entryPoint, receipt, hashes)
  const rest = hashes.filter((hash) => !shown.has(hash))
  return Effect.map(
    Landings.find(bundle.chain, bundle.entryPoint, rest, receipt.blockNumber),
    (elsewhere) => new Map([...shown, ...elsewhere])
  )
}

/** Submits bundles by the EOA that the bundle names, through its lane. */
export const make = ({ journal, lanes, releases, stopping, watcher }: Dependencies): Bundler["Type"] => {
  const settle = (bundle: Bundle, nonce: bigint, receipt: Receipt) =>
    Effect.gen(function* () {
      const outcomes = yield* outcomesOf(bundle, receipt)
      yield* journal.settle(
        {
          chainId: bundle.profile.chainId,
          signer: bundle.submitter.address,
          nonce,
          txHash: receipt.txHash,
          success: receipt.success,
          blockNumber: receipt.blockNumber,
          blockHash: receipt.blockHash
        },
        // One that is not bound to its submitter may be copied and land later: its nonce on the chain will tell.
        bundle.ops.map(
          ({ userOpHash }): OpSettlement => ({
            userOpHash,
            ...(outcomes.get(userOpHash) ?? { success: null, txHash: receipt.txHash, revertData: null })
          })
        )
      )
      yield* releases.signal
      return outcomes
    })

  const submit = (bundle: Bundle): Effect.Effect<Landed, BundlerError> =>
    Effect.gen(function* () {
      const { chain, profile, submitter } = bundle
      const [, chainNonce, balance] = yield* Effect.all(
        [
          simulate(bundle),
          Effect.mapError(chain.transactionCount(submitter.address, "pending"), nodeFailed),
          Effect.mapError(chain.balance(submitter.address), nodeFailed)
        ],
        { concurrency: "unbounded" }
      )
      if (chainNonce > maxNonce)
        return yield* fail("nodeFailed", `${chain.origin} gives a nonce of the EOA that cannot be`)
      const sent = yield* lanes
        .transact({
          ...callOf(bundle, bundle.ops),
          requestId: bundle.requestId,
          ops: bundle.ops.map(({ index }) => index),
          chain,
          chainId: profile.chainId,
          signer: submitter,
          value: 0n,
          gasLimit: bundle.gasLimit,
          prices: bundle.prices,
          l1Fee: bundle.l1Fee,
          chainNonce,
          balance
        })
        .pipe(
          Effect.catchTags({
            LaneFunds: ({ missing }) =>
              fail("insufficientFunds", `the submitting EOA lacks ${missing} wei`, { missing }),
            SignerError: (error) =>
              fail(error.reason === "refused" ? "signerRefused" : "signerUnavailable", error.message)
          }),
          Effect.catchTag("JournalError", (error) => Effect.die(error))
        )
      const mined = yield* watcher.watch<ReadonlyMap<Hex.Bytes32, OpOutcome>>({
        chain,
        txHash: sent.txHash,
        raw: sent.raw,
        confirmations: profile.confirmations,
        pollIntervalMillis: profile.pollIntervalMillis,
        onMined: (receipt) => settle(bundle, sent.nonce, receipt)
      })
      const unknown = () =>
        fail("outcomeUnknown", "transaction not confirmed in time", { txHash: sent.txHash })
      const { receipt, settled } = yield* Effect.timeoutFail(Deferred.await(mined), {
        duration: profile.receiptTimeoutMillis,
        onTimeout: unknown
      }).pipe(Effect.raceFirst(Effect.flatMap(Deferred.await(stopping), unknown)))
      return { receipt, outcomes: settled }
    })

  return { submit }
}
