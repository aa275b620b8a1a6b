import * as Arr from "effect/Array"
import * as BigInts from "effect/BigInt"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Order from "effect/Order"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Address from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Keccak from "../../domain/primitives/Keccak.js"
import * as EoaTransactions from "../chain/EoaTransactions.js"
import * as Inclusions from "../chain/Inclusions.js"
import * as Troubles from "../observe/Troubles.js"
import type { Budget, Budgets, BudgetsError, Cost, Held, Landing, Outcome } from "../ports/Budgets.js"
import type { Block, ChainClient, ChainRpcError, KnownTransaction } from "../ports/chain/ChainRpc.js"
import * as Holding from "../ports/journal/Holding.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import type { AccountId } from "../ports/Tenants.js"

/**
 * Settles the budgets' holds for signed ops by what the operator's node shows: a landed op's cost is booked, and an op
 * that can no longer land frees its hold. `bind` writes a note with each hold that says how to recognise the end.
 */

/** The budget for the operator's payments for an account's ops in a UTC day. */
export const budget = "sponsor"

/** How the end of a hold is recognised on the chain. */
interface Note {
  /** Absent in notes of an earlier version, whose holds have it as their id. */
  readonly userOpHash?: Hex.Bytes32
  readonly entryPoint: Address.Address
  /** Number of a block before which the op cannot have landed. */
  readonly since: bigint
  /** Last Unix second at which it may land; 0: no end. */
  readonly validUntil: number
  /** Another op of the wallet with this nonce proves that this op cannot land. */
  readonly wallet?: Address.Address
  readonly nonce?: bigint
}

export const note = ({ entryPoint, nonce, since, userOpHash, validUntil, wallet }: Note): string =>
  ["op", userOpHash, entryPoint, since, validUntil, wallet, nonce].join(" ")

type Payload = Pick<KnownTransaction, "data" | "to" | "value">

const payloadOf = ({ data, to, value }: Payload): Hex.Bytes32 => Keccak.hashText(`${to} ${value} ${data}`)

/** The nonce that a signer's own transaction uses; all of its versions have the same payload. */
export const directNote = (eoa: Address.Address, eoaNonce: bigint, payload: Payload): string =>
  ["eoa", eoa, eoaNonce, payloadOf(payload)].join(" ")

/** The words of a note. Earlier versions wrote JSON; their processes cannot read this one's notes. */
const wordsOf = (text: string): ReadonlyArray<string> => {
  if (!text.startsWith("{")) return text.split(" ")
  const { eoa, eoaNonce, payload, ...op } = JSON.parse(text) as Record<string, string>
  if (eoa !== undefined) return ["eoa", eoa, eoaNonce ?? "", payload ?? ""]
  return [
    "op",
    ...["userOpHash", "entryPoint", "since", "validUntil", "wallet", "nonce"].map((name) => op[name] ?? "")
  ]
}

const decodeNote = (text: string): ReadonlyArray<Note> => {
  const [kind, userOpHash = "", entryPoint = "", since = "", validUntil = "", wallet = "", nonce = ""] =
    wordsOf(text)
  if (kind !== "op") return []
  return [
    {
      ...(userOpHash !== "" && { userOpHash: Hex.unsafe32(userOpHash) }),
      entryPoint: Address.unsafe(entryPoint),
      since: BigInt(since),
      validUntil: Number(validUntil),
      ...(wallet !== "" && { wallet: Address.unsafe(wallet), nonce: BigInt(nonce) })
    }
  ]
}

const decodeDirect = (text: string) => {
  const [kind, eoa = "", eoaNonce = "", payload = ""] = wordsOf(text)
  return kind === "eoa" ? [{ eoa: Address.unsafe(eoa), eoaNonce: BigInt(eoaNonce), payload }] : []
}

/** An account's signed ops, and the operator's node, which shows their outcomes. */
export interface Watched {
  readonly accountId: AccountId
  readonly chain: ChainClient
  readonly profile: NetworkProfile
}

/** Follows what budgets hold for signed ops: the sponsor's gas, and the amounts of spending limits. */
export interface HoldFollower {
  /**
   * Follows the account's signed ops on the chain until all of them have ended. Books their cost at settled depth; ops
   * not mined in time cost nothing. Only the chain decides, whatever the request's state is.
   */
  readonly watch: (watched: Watched) => Effect.Effect<void>
  /** Settles now what the chain has decided. */
  readonly settle: (watched: Watched) => Effect.Effect<void>
}

export const HoldFollower: Context.Key<HoldFollower, HoldFollower> = Context.Service("castellan/HoldFollower")

const pollsPerRead = 5

/** Names of the budgets that count the limits of spending rules begin with it, see `Rulebook.potOf`. */
const limits = "policy "

const isFollowed = ({ name }: Budget): boolean => name === budget || name.startsWith(limits)

const isSponsored = ({ parts }: Held): boolean => parts.some(({ name }) => name === budget)

/** Ids of the previous version's holds for gas end with `/fees`; it held amounts separately. */
const costOf = (hold: Held, { cost, success }: Landing): Cost =>
  isSponsored(hold) || hold.id.endsWith("/fees") ? cost : { cost, success }

export const accountsOf = (
  budgets: Budgets["Service"],
  chainId: bigint
): Effect.Effect<ReadonlyArray<AccountId>, BudgetsError> =>
  Effect.map(budgets.open(chainId), (holds) =>
    Arr.dedupe(
      holds.flatMap((hold) =>
        hold.bound && isFollowed(hold) && hold.accountId !== null ? [hold.accountId] : []
      )
    )
  )

/**
 * Time after a reservation at which amounts count as spent if the chain shows no end of them, milliseconds: of an op that
 * may land for ever, and of a used nonce whose transaction the node does not show.
 */
const searchMillis = 86_400_000

/** Settles what signers' own transactions hold, where the chain has used their nonces; returns how many are left. */
const settleDirect = (
  budgets: Budgets["Service"],
  { chain, profile: { chainId } }: Watched,
  all: ReadonlyArray<Held>,
  settledNumber: bigint
) =>
  Effect.gen(function* () {
    const holds = all.flatMap((hold) =>
      hold.notes
        .flatMap(decodeDirect)
        .slice(0, 1)
        .map((note) => ({ ...note, hold }))
    )
    let left = holds.length
    if (settledNumber < 0n) return left
    const now = yield* Clock.currentTimeMillis
    for (const [eoa, group] of Map.groupBy(holds, (each) => each.eoa)) {
      const next = yield* chain.transactionCount(eoa, settledNumber)
      const used = group.filter(({ eoaNonce }) => eoaNonce < next)
      const users = yield* EoaTransactions.find(chain, eoa, Arr.dedupe(used.map(({ eoaNonce }) => eoaNonce)))
      for (const { eoaNonce, hold, payload } of used) {
        const user = users.find(({ nonce }) => nonce === eoaNonce)
        if (user === undefined) {
          if (now <= hold.expiresAt + searchMillis) continue
          yield* budgets.settle(chainId, hold.id, "held")
          left -= 1
          continue
        }
        const isOwn = payloadOf(user) === payload
        const receipt = isOwn ? yield* chain.receipt(user.txHash) : null
        if (isOwn && receipt === null) continue
        const gas =
          receipt === null ? 0n : receipt.gasUsed * receipt.effectiveGasPrice + (receipt.l1Fee ?? 0n)
        const cost = receipt === null ? 0n : costOf(hold, { cost: gas, success: receipt.success })
        yield* budgets.settle(chainId, hold.id, cost)
        left -= 1
      }
    }
    return left
  })

/** A hold, and what its versions have in common. */
interface Followed extends Pick<Note, "nonce" | "since" | "wallet"> {
  readonly hold: Held
  readonly hashes: ReadonlyArray<Hex.Bytes32>
  readonly validUntil: number
}

interface Heads {
  readonly latest: bigint
  readonly settled: Block | null
  readonly settledNumber: bigint
}

/** Most holds of one search. */
const mostHashes = 256

/**
 * Settles ops of one EntryPoint, the oldest first; returns how many are left. Where the node takes too many queries for
 * all of them, it searches for the older and the younger half: one old op keeps no others from their end.
 */
const settleOps = (
  budgets: Budgets["Service"],
  watched: Watched,
  heads: Heads,
  entryPoint: Address.Address,
  group: ReadonlyArray<Followed>
): Effect.Effect<number, BudgetsError | ChainRpcError> =>
  Effect.gen(function* () {
    const { chain, profile } = watched
    const { chainId, settledDepth } = profile
    const { latest, settled, settledNumber } = heads
    const now = yield* Clock.currentTimeMillis
    /** Whether the end of an op is certain although the chain does not show it: its time is over, or it has no end. */
    const isOver = ({ hold, validUntil }: Followed) => {
      if (validUntil === Number.POSITIVE_INFINITY)
        return !isSponsored(hold) && now > hold.expiresAt + searchMillis
      return settled !== null && settled.timestamp > validUntil
    }
    const parts = (): Effect.Effect<number, BudgetsError | ChainRpcError> => {
      const [only, ...others] = group
      if (only === undefined) return Effect.succeed(0)
      // Nothing shows that it has not landed.
      if (others.length === 0)
        return isOver(only) ? Effect.as(budgets.settle(chainId, only.hold.id, "held"), 0) : Effect.succeed(1)
      const halves = Arr.chunksOf(group, Math.ceil(group.length / 2))
      return Effect.map(
        Effect.forEach(halves, (half) => settleOps(budgets, watched, heads, entryPoint, half)),
        (left) => left.reduce((sum, each) => sum + each, 0)
      )
    }
    const first = group.reduce((least, { since }) => BigInts.min(least, since), latest)
    // A reorganisation may put a landing below the head at its signature.
    const range = { from: BigInts.max(first - BigInt(settledDepth), 0n), to: latest }
    const search = Inclusions.within(
      chain,
      entryPoint,
      group.flatMap(({ hashes }) => hashes),
      range,
      // A node without this block could miss landings.
      { known: settledNumber }
    )
    const landings = yield* Effect.catchTag(search, "TooManyAsks", () => Effect.succeed(null))
    if (landings === null) return yield* parts()
    const landingOf = ({ hashes }: Followed) =>
      hashes.map((hash) => landings.get(hash)).find((each) => each !== undefined)
    const missing = group.filter((each) => landingOf(each) === undefined)
    const others = yield* Inclusions.ofWalletsWithin(
      chain,
      entryPoint,
      Arr.dedupe(missing.flatMap(({ nonce, wallet }) => (nonce === undefined ? [] : (wallet ?? [])))),
      range,
      settledNumber
    ).pipe(
      // Their time ends those that the ops of a busy wallet would end earlier.
      Effect.catchTag("TooManyAsks", () => Effect.succeed([]))
    )
    let left = group.length
    const outcomes = new Map<string, Outcome>()
    for (const each of group) {
      const { hold, nonce, validUntil, wallet } = each
      const landing = landingOf(each)
      const isReplaced = others.some(
        (other) => other.sender === wallet && other.nonce === nonce && other.blockNumber <= settledNumber
      )
      const isFinal =
        landing === undefined ? isReplaced || isOver(each) : landing.blockNumber <= settledNumber
      if (isFinal) {
        left -= 1
        const isEndless = validUntil === Number.POSITIVE_INFINITY && !isReplaced
        const cost = landing === undefined ? (isEndless ? "held" : 0n) : costOf(hold, landing)
        outcomes.set(hold.id, { isEnd: true, cost })
        continue
      }
      const cost = landing?.cost ?? null
      // Limits free nothing that a reorganisation could still bring back.
      if (isSponsored(hold) && cost !== hold.landed) outcomes.set(hold.id, { isEnd: false, cost })
    }
    yield* budgets.record(chainId, outcomes)
    return left
  })

/** Reads the chain once; returns the number of ops that are left. */
const settle = (budgets: Budgets["Service"], watched: Watched) =>
  Effect.gen(function* () {
    const { accountId, chain, profile } = watched
    const { chainId, settledDepth } = profile
    const head = yield* chain.block("latest")
    if (head === null) return 1
    const settledNumber = head.number - BigInt(settledDepth) + 1n
    const { hasLater, holds: due } = yield* budgets.due(chainId, accountId, BigInts.max(settledNumber, 0n))
    const later = Number(hasLater)
    const all = due.filter(({ parts }) => parts.some(isFollowed))
    if (all.length === 0) return later
    // All sealed versions of an op share one hold, and at most one lands.
    const holds = all.flatMap((hold) => {
      const versions = hold.notes.flatMap(decodeNote)
      const [first] = versions
      return first === undefined
        ? []
        : [
            {
              ...first,
              hold,
              hashes: versions.map(({ userOpHash }) => userOpHash ?? Hex.unsafe32(hold.id)),
              since: versions.reduce((least, { since }) => BigInts.min(least, since), first.since),
              validUntil: versions.some((each) => each.validUntil === 0)
                ? Number.POSITIVE_INFINITY
                : Math.max(...versions.map((each) => each.validUntil))
            }
          ]
    })
    const direct = yield* Effect.catchTag(
      settleDirect(budgets, watched, all, settledNumber),
      "ChainRpcError",
      ({ message }) => Effect.as(Effect.logDebug(`signers' transactions cannot be followed: ${message}`), 1)
    )
    const settled = settledNumber < 0n ? null : yield* chain.block(settledNumber)
    const heads = { latest: head.number, settled, settledNumber }
    let left = later + direct
    for (const [entryPoint, group] of Object.entries(Arr.groupBy(holds, (each) => each.entryPoint)))
      for (const some of Arr.chunksOf(
        Arr.sortWith(group, ({ since }) => since, Order.BigInt),
        mostHashes
      ))
        left += yield* settleOps(budgets, watched, heads, Address.unsafe(entryPoint), some)
    return left
  })

const troubleOf = (place: string): Troubles.Trouble => ({
  what: "held amounts are not followed",
  place
})

export const make = (budgets: Budgets["Service"], scope: Scope.Scope): HoldFollower => {
  const troubles = Troubles.make()
  /** Accounts followed in this process, and whether an op was sealed since the last reading. */
  const followed = new Map<string, { sealed: boolean }>()

  /** Whether all have ended; then the account is not followed any more. */
  const ended = (watched: Watched, state: { sealed: boolean }, key: string): Effect.Effect<boolean> =>
    Effect.gen(function* () {
      state.sealed = false
      const left = yield* Effect.catch(settle(budgets, watched), (error) =>
        Effect.as(Effect.logDebug(`held amounts cannot be followed: ${error._tag}`), 1)
      )
      yield* troubles.passed(troubleOf(key))
      const over = left === 0 && !state.sealed
      if (over) followed.delete(key)
      return over
    })

  return {
    settle: (watched) => Effect.ignoreCause(settle(budgets, watched), { log: "Debug" }),
    watch: (watched) =>
      Effect.suspend(() => {
        const key = `${watched.profile.chainId}:${watched.accountId}`
        const known = followed.get(key)
        if (known !== undefined) {
          known.sealed = true
          return Effect.void
        }
        const state = { sealed: false }
        followed.set(key, state)
        return Effect.asVoid(
          Effect.forkIn(
            ended(watched, state, key).pipe(
              Effect.repeat({
                until: (over) => over,
                schedule: Schedule.spaced(watched.profile.pollIntervalMillis * pollsPerRead)
              }),
              Effect.catchCause((cause) => troubles.failed(troubleOf(key), cause)),
              Effect.ensuring(Effect.sync(() => followed.delete(key))),
              Holding.outlive
            ),
            scope
          )
        )
      })
  }
}
