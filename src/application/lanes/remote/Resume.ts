import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type * as Scope from "effect/Scope"
import * as EntryPoint from "../../../domain/erc4337/EntryPoint.js"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import * as Troubles from "../../observe/Troubles.js"
import type { BundlerRpc } from "../../ports/chain/BundlerRpc.js"
import type { ChainClient, ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { RemoteOpJournal } from "../../ports/journal/RemoteOpJournal.js"
import type { RemoteSubmission } from "../../ports/journal/RemoteSubmissions.js"
import type { Lane } from "../../ports/journal/Transactions.js"
import type { NetworkProfile } from "../../ports/NetworkProfile.js"
import type { Networks } from "../../ports/Networks.js"
import * as RemoteInclusions from "./RemoteInclusions.js"

/**
 * Watches, at a fixed interval, ops that the journal has at remote bundlers or as landed without an own transaction: left by an
 * earlier process, or found on the chain. Watched ops switch to the operator's current node and bundler.
 */
export interface Dependencies {
  readonly journal: Pick<RemoteOpJournal["Service"], "remoteSubmissions">
  readonly holds: (lane: Lane) => boolean
  readonly networks: Networks["Service"]
  readonly nodes: ChainRpc["Service"]
  readonly bundlers: BundlerRpc["Service"]
  readonly ops: { readonly resume: (held: RemoteInclusions.Held) => Effect.Effect<unknown> }
}

const every = "5 seconds"

/** Cause for which an op cannot be followed. */
class Unfollowed extends Data.TaggedError("Unfollowed")<{ readonly message: string }> {}

const unfollowed = (message: string) => new Unfollowed({ message })

/**
 * The node that is polled for an op: the caller's, if the request named one. Otherwise the operator's current node, since a
 * stored URL may be outdated; it also replaces a caller's node that is no longer allowed.
 */
const nodeOf = (
  { connect }: ChainRpc["Service"],
  { rpc: own }: NetworkProfile,
  { accountId, node: { rpc, trust } }: RemoteSubmission
): Effect.Effect<ChainClient, { readonly message: string }> => {
  const ofOperator: Effect.Effect<ChainClient, { readonly message: string }> =
    own === null
      ? unfollowed("the operator has no node for its chain any more")
      : connect(Redacted.value(own), "operator")
  if (trust === "operator") return ofOperator
  if (rpc === null) return unfollowed("its node was sealed under another key, or changed")
  return Effect.catch(connect(Redacted.value(rpc), { account: accountId }), (error) =>
    own === null ? Effect.fail(error) : ofOperator
  )
}

export const resume = (
  { bundlers, networks, nodes, ops }: Pick<Dependencies, "bundlers" | "networks" | "nodes" | "ops">,
  submission: RemoteSubmission
): Effect.Effect<unknown, { readonly message: string }> =>
  Effect.gen(function* () {
    const { accountId, signed, space } = submission
    const profile = yield* networks.profile(accountId, space.chainId)
    const version = EntryPoint.versionOf(space.entryPoint)
    if (profile === null || version === undefined)
      return yield* unfollowed("its network or EntryPoint is not configured any more")
    const chain = yield* nodeOf(nodes, profile, submission)
    if (signed === null)
      return yield* ops.resume({ bundler: null, chain, profile, submission, offer: null, validUntil: 0 })
    const op = yield* Effect.mapError(Effect.fromResult(UserOperation.decode(version, signed)), (problem) =>
      unfollowed(`a stored op cannot be read: ${problem}`)
    )
    const { remoteBundler } = profile
    const bundler =
      remoteBundler === null
        ? null
        : yield* Effect.orElseSucceed(bundlers.connect(Redacted.value(remoteBundler)), () => null)
    const validUntil = RemoteInclusions.validUntilOf(version, op)
    const offer = { version, entryPoint: space.entryPoint, op }
    yield* ops.resume({ bundler, chain, profile, submission, offer, validUntil })
  })

export const make = (dependencies: Dependencies) => {
  const { holds, journal } = dependencies
  const troubles = Troubles.make()
  const troubleOf = (what: string, subject?: string): Troubles.Trouble => ({
    what,
    place: "",
    ...(subject !== undefined && { subject })
  })
  const round = Effect.gen(function* () {
    for (const submission of yield* journal.remoteSubmissions) {
      const { space, userOpHash } = submission
      if (!holds({ chainId: space.chainId, signer: space.authority })) continue
      const trouble = troubleOf("remote op not followed; retrying", userOpHash)
      yield* Effect.annotateLogs(troubles.tolerate(trouble, resume(dependencies, submission)), { userOpHash })
    }
  })
  const trouble = {
    ...troubleOf("ops at remote bundlers could not be read from the journal; retrying"),
    isDelay: true
  }
  return (scope: Scope.Scope): Effect.Effect<void> =>
    Effect.asVoid(
      Effect.forkIn(
        Effect.forever(Effect.andThen(troubles.tolerate(trouble, round), Effect.sleep(every))),
        scope
      )
    )
}
