import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schedule from "effect/Schedule"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Bytes32 } from "../../../domain/primitives/Hex.js"
import * as Troubles from "../../observe/Troubles.js"
import {
  type Bundle,
  type Bundler,
  BundlerError,
  ofNode,
  type Refusal,
  type SignedOp
} from "../../ports/chain/Bundler.js"
import {
  type BundlerClient,
  type BundlerRpc,
  type BundlerRpcError,
  isCertain
} from "../../ports/chain/BundlerRpc.js"
import type { RemoteOpJournal } from "../../ports/journal/RemoteOpJournal.js"
import * as RemoteInclusions from "./RemoteInclusions.js"
import type { RemoteOps } from "./RemoteOps.js"

interface Dependencies {
  readonly remoteOpJournal: RemoteOpJournal["Service"]
  readonly bundlers: BundlerRpc["Service"]
  readonly remoteOps: RemoteOps
}

const fail = (reason: BundlerError["reason"], message: string) =>
  new BundlerError({ reason, message, missing: 0n, gas: null, dropped: new Map() })

/** AA10 and AA25: the chain, or the bundler's pool, is not as it was when the op was made. */
const outdated = /\bAA(?:10|25)\b/

const isPassing = ({ message, reason }: BundlerRpcError): boolean =>
  reason === "throttled" || reason === "rateLimited" || outdated.test(message)

const again = { times: 5, schedule: Schedule.exponential("100 millis") }

/** Why an op is not sent whose nonce follows one that was refused. */
const behind: Refusal = {
  message: "an earlier operation of the same wallet was refused",
  passing: true,
  mayLand: false
}

/**
 * Gives ops, one after the other, to the bundler that the profile names. From the moment before it is given away an op
 * counts as perhaps sent. A refusal does not take it back: the bundler has it, signed, and nothing in it says who may
 * submit it. It is offered again after a refusal for now, and never after another one; it is given up when it can land
 * no more. What has no end is given up at once: whoever signed it without one may have it submitted at any time, by
 * anybody.
 */
export const make = ({ bundlers, remoteOpJournal, remoteOps }: Dependencies): Bundler["Service"] => {
  const troubles = Troubles.make()
  /** EntryPoints and chain of the bundlers that were asked for them. */
  const serving = new WeakMap<
    BundlerClient,
    { readonly chainId: bigint; readonly entryPoints: Set<Address> }
  >()

  const unusable = (error: BundlerRpcError) => fail("bundlerUnavailable", error.message)

  /** The bundler, once it has said that it serves the chain and the EntryPoint. */
  const clientFor = ({ entryPoint, profile }: Bundle) =>
    Effect.gen(function* () {
      const { chainId, remoteBundler } = profile
      if (remoteBundler === null) return yield* fail("bundlerUnavailable", "the profile names no bundler")
      const client = yield* Effect.mapError(bundlers.connect(Redacted.value(remoteBundler)), unusable)
      let served = serving.get(client)
      if (served?.entryPoints.has(entryPoint) !== true) {
        const [chain, entryPoints] = yield* Effect.mapError(
          Effect.all([client.chainId, client.entryPoints], { concurrency: "unbounded" }),
          unusable
        )
        served = { chainId: chain, entryPoints: new Set(entryPoints) }
        serving.set(client, served)
      }
      if (served.chainId !== chainId)
        return yield* fail("bundlerUnavailable", `it serves chain ${served.chainId}`)
      if (!served.entryPoints.has(entryPoint))
        return yield* fail("bundlerUnavailable", `it does not serve EntryPoint ${entryPoint}`)
      return client
    })

  /** Null: the op is sent, or perhaps sent. */
  const give = (
    { access, chain, entryPoint, profile, requestId, submitter, version }: Bundle,
    client: BundlerClient,
    since: bigint,
    { index, op, userOpHash }: SignedOp
  ): Effect.Effect<Refusal | null> =>
    Effect.uninterruptibleMask((restore) =>
      Effect.gen(function* () {
        const offer = { version, entryPoint, op }
        const signed = UserOperation.encode(version, op)
        const node = { rpc: access.rpc, trust: access.trust }
        // Whether a call that failed was durable is not known; the same again does no harm.
        yield* Effect.retry(
          remoteOpJournal.submitRemotely({ requestId, node, since, ops: [{ index, signed, userOpHash }] }),
          again
        )
        const { chainId } = profile
        const validUntil = RemoteInclusions.validUntilOf(version, op)
        const entry = yield* remoteOps.watch({
          chain,
          profile,
          bundler: client,
          offer,
          validUntil,
          submission: {
            requestId,
            index,
            accountId: access.accountId,
            space: { authority: submitter.address, chainId, entryPoint, wallet: op.sender },
            userOpHash,
            node,
            since,
            signed,
            isRefused: false,
            includedIn: null,
            landedAs: userOpHash
          }
        })
        const answer = yield* Effect.onInterrupt(restore(Effect.result(client.send(offer, userOpHash))), () =>
          remoteOps.offered(entry, "unknown")
        )
        const error = Result.isFailure(answer) ? answer.failure : null
        const trouble = {
          what: "a bundler did not take an op for certain; it stays watched",
          place: client.origin,
          isDelay: true
        }
        if (error === null) {
          yield* troubles.passed(trouble)
          return yield* Effect.as(remoteOps.offered(entry, "taken"), null)
        }
        const passing = isPassing(error)
        // What the chain shows counts more than what the bundler says.
        if (!isCertain(error) || entry.landed !== null || (passing && validUntil !== 0)) {
          yield* remoteOps.offered(entry, "unknown")
          yield* Effect.annotateLogs(troubles.failed(trouble, Cause.fail(error)), { userOpHash })
          return null
        }
        const { message } = error
        if (validUntil !== 0) {
          yield* remoteOps.offered(entry, "refused")
          return { message, passing, mayLand: true }
        }
        yield* Effect.tapCause(Effect.retry(remoteOpJournal.revokeRemote(requestId, [index]), again), () =>
          remoteOps.offered(entry, "unknown")
        )
        yield* remoteOps.forget(entry)
        return { message, passing, mayLand: false }
      }).pipe(Effect.orDie)
    )

  return {
    submit: (bundle) =>
      Effect.gen(function* () {
        if (bundle.aggregate !== null)
          return yield* fail("refusedByBundler", "it takes no ops of aggregators")
        const client = yield* clientFor(bundle)
        const head = yield* Effect.mapError(bundle.chain.block("latest"), ofNode)
        if (head === null) return yield* fail("nodeFailed", "the node knows no latest block")
        const refusals = new Map<Bytes32, Refusal>()
        const closed = new Set<string>()
        for (const signed of bundle.ops) {
          const key = `${signed.op.sender}:${Nonce.keyOf(signed.op.nonce)}`
          const refusal = closed.has(key) ? behind : yield* give(bundle, client, head.number, signed)
          if (refusal === null) continue
          closed.add(key)
          refusals.set(signed.userOpHash, refusal)
        }
        return refusals
      })
  }
}
