import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as BundledOps from "../../../domain/erc4337/BundledOps.js"
import * as EntryPoint from "../../../domain/erc4337/EntryPoint.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import * as Ledger from "../../../domain/wallet/Ledger.js"
import type * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import * as Inclusions from "../../chain/Inclusions.js"
import * as WalletEpochs from "../../chain/WalletEpochs.js"
import { ChainRpcError } from "../../ports/chain/ChainRpc.js"
import type { NonceSpace, OpRecord, RequestRecord } from "../../ports/journal/Requests.js"
import type { OpContext } from "../../prepare/OpContext.js"
import * as Wallets from "../../prepare/wallets/Wallets.js"

/**
 * The nonce under which something was signed for an element, and left the process. Those bytes may land in any later
 * transaction of the submitter, so the element is prepared again under this nonce, and at most one version lands.
 */
export interface HeldNonce {
  readonly space: NonceSpace
  readonly nonceKey: bigint
  readonly sequence: bigint
}

/** By element. */
export type HeldNonces = ReadonlyMap<number, HeldNonce>

const isVersionOf = (op: OpRecord) => (version: OpRecord) =>
  version.index === op.index &&
  version.space.entryPoint === op.space.entryPoint &&
  version.space.wallet === op.space.wallet &&
  version.nonceKey === op.nonceKey &&
  version.sequence === op.sequence

/** What the journal keeps for these elements: ops that are on no way, under nonces for which something was signed. */
export const of = (
  { ops, signed }: Pick<RequestRecord, "ops" | "signed">,
  elements: ReadonlyArray<number>
): HeldNonces =>
  new Map(
    ops
      .filter((op) => op.state === "accepted" && elements.includes(op.index) && signed.some(isVersionOf(op)))
      .map((op) => [op.index, op])
  )

export interface Search {
  /** A block that the node has to have. */
  readonly known?: bigint
  /** Unix milliseconds. */
  readonly since?: number | null
}

/**
 * The versions of these elements that are on the chain, up to the block `known` at least; `since`: see
 * `Inclusions.find`.
 */
export const landings = (
  { connection: { chain }, entryPoint }: Pick<OpContext, "connection" | "entryPoint">,
  { signed }: Pick<RequestRecord, "signed">,
  elements: ReadonlyArray<number>,
  { known = 0n, since = null }: Search = {}
) =>
  Effect.gen(function* () {
    const versions = signed.filter(({ index }) => elements.includes(index))
    const hashes = versions.flatMap(({ userOpHash }) => userOpHash ?? [])
    if (hashes.length === 0) return new Map<number, never>()
    const head = yield* chain.block("latest")
    const at = head?.number ?? 0n
    const found = yield* Inclusions.find(chain, entryPoint, hashes, BigInts.max(at, known), since)
    return new Map(
      versions.flatMap(({ index, returned, userOpHash }) => {
        const outcome = userOpHash === null ? undefined : found.get(userOpHash)
        if (userOpHash === null || outcome === undefined) return []
        const confirmations = Inclusions.confirmationsOf(outcome.blockNumber, at)
        return [[index, { ...outcome, confirmations, returned, userOpHash }] as const]
      })
    )
  })

/**
 * The op that has used the held nonce where it makes the element's call: a version of it that an older journal, or one that
 * a standby had not received whole, does not know. Null: the op there makes another call. Fails while the node does not
 * show what did it.
 */
export const unknownLanding = (
  { chainId, connection: { chain, profile }, entryPoint }: OpContext,
  { nonceKey, sequence, space: { wallet } }: HeldNonce,
  call: WalletCalls.Call,
  { known, since }: { readonly known: bigint; readonly since: number }
) =>
  Effect.gen(function* () {
    const nonce = Nonce.make(nonceKey, sequence)
    const version = EntryPoint.versionOf(entryPoint)
    const head = yield* chain.block("latest")
    const at = BigInts.max(head?.number ?? 0n, known)
    const seen = yield* Inclusions.ofWallets(chain, entryPoint, [wallet], at, since)
    for (const [userOpHash, outcome] of seen) {
      if (outcome.nonce !== nonce || outcome.sender !== wallet || version === undefined) continue
      const transaction = yield* chain.transaction(outcome.txHash)
      if (transaction === null)
        return yield* new ChainRpcError({
          reason: "unreachable",
          origin: chain.origin,
          message: "it does not show the transaction that has used an op's nonce"
        })
      const op = BundledOps.read(version, transaction.data).find(
        (each) => UserOperation.hash(version, entryPoint, chainId, each) === userOpHash
      )
      const isSame = op !== undefined && Ledger.makes(op.callData, call, profile.ledger)
      const confirmations = Inclusions.confirmationsOf(outcome.blockNumber, at)
      return isSame ? { ...outcome, confirmations, returned: null, userOpHash } : null
    }
    return null
  })

/** What has become of held nonces. */
export interface Fate {
  /** None of their versions can land any more: at settled depth another op has used it, or the wallet another configuration. */
  readonly dead: ReadonlyArray<number>
  /** The same in blocks that may be taken back, or the node does not tell. */
  readonly undecided: ReadonlyArray<number>
  /** The newest block at settled depth: what has used a dead nonce is there or below. */
  readonly settledTo: bigint
}

/**
 * Asks the chain for each nonce. Asked before `landings`, so that what lands in between is seen there; of a node that has
 * `settledTo`, or a landing that used a dead nonce would be overlooked.
 */
export const fateOf = (
  { connection: { chain, profile }, formula }: OpContext,
  { facts }: { readonly facts: ChainFacts },
  held: HeldNonces
): Effect.Effect<Fate, ChainRpcError> =>
  Effect.gen(function* () {
    const head = yield* chain.block("latest")
    const depth = BigInts.max((head?.number ?? 0n) - BigInt(profile.settledDepth) + 1n, 0n)
    const wallets = [...new Set([...held.values()].map(({ space }) => space.wallet))]
    const nextOf = ({ nonceKey, space }: HeldNonce, at?: bigint) =>
      Effect.map(
        chain.call({ to: space.entryPoint, data: Nonce.question(space.wallet, nonceKey) }, undefined, at),
        Nonce.answered
      )
    const [states, nonces] = yield* Effect.all(
      [
        Wallets.read(facts, chain, formula.initCode, wallets),
        Effect.forEach(held.values(), (each) => nextOf(each), { concurrency: "unbounded" })
      ],
      { concurrency: "unbounded" }
    )
    const dead: Array<number> = []
    const undecided: Array<number> = []
    for (const [place, [index, each]] of [...held].entries()) {
      const epoch = Nonce.epochOf(Nonce.make(each.nonceKey, each.sequence))
      const { wallet } = each.space
      const next = nonces[place] ?? null
      if (next === null) undecided.push(index)
      else if (next > each.sequence) {
        const settled = yield* nextOf(each, depth)
        ;(settled !== null && settled > each.sequence ? dead : undecided).push(index)
      } else if (Wallets.epochOf(states.get(wallet)) !== epoch) {
        const settled = yield* WalletEpochs.at(chain, wallet, depth)
        ;(settled !== null && settled !== epoch ? dead : undecided).push(index)
      }
    }
    return { dead, undecided, settledTo: depth }
  })

/** Those of the ops that have another nonce than the one that they are held to; `behind`: an earlier one of its key. */
export const displaced = <
  A extends { readonly index: number; readonly nonceKey: bigint; readonly sequence: bigint }
>(
  ready: ReadonlyArray<A>,
  held: HeldNonces
): { readonly moved: ReadonlyArray<A>; readonly behind: ReadonlyArray<A> } => {
  const moved = ready.filter(({ index, nonceKey, sequence }) => {
    const own = held.get(index)
    return own !== undefined && (own.nonceKey !== nonceKey || own.sequence !== sequence)
  })
  const behind = moved.filter(({ index, nonceKey, sequence }) => {
    const own = held.get(index)
    return own?.nonceKey === nonceKey && sequence < own.sequence
  })
  return { moved, behind }
}
