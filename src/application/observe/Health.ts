import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Address } from "../../domain/primitives/Address.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Keccak from "../../domain/primitives/Keccak.js"
import * as Words from "../../domain/primitives/Words.js"
import { type Block, type ChainClient, ChainRpc, type ChainRpcError } from "../ports/chain/ChainRpc.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import * as MonotonicTime from "../runtime/MonotonicTime.js"
import * as Wait from "../runtime/Wait.js"
import * as Metrics from "./Metrics.js"

/**
 * The health of each chain by the operator's node: its head, its answer time, the balances of the submitting EOAs, and
 * the sponsor's deposits. `poll` reads them; metrics, incidents and the console use the last result.
 */

/** An amount in wei, and the time of its reading in Unix milliseconds. */
export interface Reading {
  readonly wei: bigint
  readonly at: number
}

export interface ChainHealth {
  readonly profile: NetworkProfile
  /** Wei; an EOA with less is low. */
  readonly lowBalance: bigint
  /** The newest block that the node returned; null: none yet. */
  readonly head: Block | null
  /** When the head's number last grew, Unix milliseconds; null: never. */
  readonly headAt: number | null
  /** The last answer, Unix milliseconds; null: none yet. */
  readonly answeredAt: number | null
  /** Duration of the last answer, milliseconds. */
  readonly answerMillis: number | null
  /** The polls that failed since the last answer; null: the last poll was answered. */
  readonly failing: { readonly since: number; readonly polls: number; readonly message: string } | null
  readonly eoas: ReadonlyMap<Address, Reading>
  /** The sponsor's deposits, by EntryPoint. */
  readonly deposits: ReadonlyMap<Address, Reading>
}

export interface Health {
  readonly isOwn: (address: Address) => boolean
  /** Registers an EOA that may submit, on chains that `submits` names. */
  readonly register: (address: Address) => Effect.Effect<void>
  /** Registers an EOA that submits on this chain: `poll` reads its balance from now on. */
  readonly submits: (chainId: bigint, address: Address) => Effect.Effect<void>
  /** Queries every operator's node once, and logs each EOA whose balance has fallen below the network's bound. */
  readonly poll: Effect.Effect<void, never, ChainRpc>
  /** The chains in the order of the configuration, as they were last polled. */
  readonly chains: () => ReadonlyArray<ChainHealth>
}

export const Health: Context.Key<Health, Health> = Context.Service("castellan/Health")

/** A network, and the wei below which the balance of an EOA is logged. */
export interface Bounded {
  readonly profile: NetworkProfile
  readonly least: bigint
}

/** Time limit of a node's answer to a poll, milliseconds. */
export const patienceMillis = 5_000

/** Age from which an amount is read again, milliseconds. */
const renewalMillis = 10_000

/** Balances in one poll: those read longest ago. A service with many EOAs does not use its nodes up for them. */
const mostBalances = 16

const balanceOf = Keccak.selector("balanceOf(address)")

type Mutable<A> = { -readonly [K in keyof A]: A[K] }

interface Chain extends Mutable<Omit<ChainHealth, "deposits" | "eoas">> {
  readonly eoas: Map<Address, Reading>
  readonly deposits: Map<Address, Reading>
  readonly submitting: Set<Address>
  readonly low: Set<Address>
}

const labels = ({ profile: { chainId } }: Pick<Chain, "profile">) => ({ chain: chainId.toString() })

const noteHead = (chain: Chain, head: Block | null, began: number) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    if (head !== null && (chain.head === null || head.number !== chain.head.number)) chain.headAt = now
    chain.head = head ?? chain.head
    chain.answeredAt = now
    chain.answerMillis = (yield* MonotonicTime.millis) - began
    chain.failing = null
    yield* Metrics.note(Metrics.nodeUp, labels(chain), 1)
    yield* Metrics.note(Metrics.nodeSeconds, labels(chain), chain.answerMillis / 1_000)
    if (head === null) return
    yield* Metrics.note(Metrics.headBlock, labels(chain), Number(head.number))
    yield* Metrics.note(Metrics.headSeconds, labels(chain), Math.max(0, now / 1_000 - head.timestamp))
    if (head.baseFeePerGas !== null)
      yield* Metrics.note(Metrics.baseFee, labels(chain), Number(head.baseFeePerGas))
  })

const noteSilence = (chain: Chain, { message }: Pick<ChainRpcError, "message">) =>
  Effect.gen(function* () {
    const now = yield* Clock.currentTimeMillis
    chain.failing = {
      since: chain.failing?.since ?? now,
      polls: (chain.failing?.polls ?? 0) + 1,
      message
    }
    yield* Metrics.note(Metrics.nodeUp, labels(chain), 0)
    if (chain.head !== null)
      yield* Metrics.note(Metrics.headSeconds, labels(chain), Math.max(0, now / 1_000 - chain.head.timestamp))
  })

const readBalance = (chain: Chain, client: ChainClient, address: Address) =>
  Effect.gen(function* () {
    const wei = yield* client.balance(address)
    chain.eoas.set(address, { wei, at: yield* Clock.currentTimeMillis })
    if (wei >= chain.lowBalance) return void chain.low.delete(address)
    if (chain.low.has(address)) return
    chain.low.add(address)
    yield* Effect.annotateLogs(Effect.logWarning("EOA balance low"), {
      chainId: chain.profile.chainId.toString(),
      address,
      balance: wei.toString(),
      bound: chain.lowBalance.toString()
    })
  })

const readDeposit = (chain: Chain, client: ChainClient, entryPoint: Address, paymaster: Address) =>
  Effect.gen(function* () {
    const data = Words.call(balanceOf, [Words.address(paymaster)])
    const answer = yield* client.call({ to: entryPoint, data })
    if (!answer.success || Hex.size(answer.data) !== 32) return
    const wei = BigInt(answer.data)
    chain.deposits.set(entryPoint, { wei, at: yield* Clock.currentTimeMillis })
    yield* Metrics.note(Metrics.sponsorDeposit, { ...labels(chain), entrypoint: entryPoint }, Number(wei))
  })

/** Whether an amount was never read, or so long ago that it may be read again. */
const isDue = (reading: Reading | undefined, now: number): boolean =>
  reading === undefined || now - reading.at >= renewalMillis

/** The head decides whether the node answers. A failed read of an amount leaves the last reading. */
const pollChain = (chain: Chain): Effect.Effect<void, never, ChainRpc> => {
  const { entryPoints, rpc, sponsor } = chain.profile
  if (rpc === null) return Effect.void
  return Effect.gen(function* () {
    const client = yield* (yield* ChainRpc).connect(Redacted.value(rpc), "operator")
    const began = yield* MonotonicTime.millis
    const now = yield* Clock.currentTimeMillis
    const eoas = [...chain.submitting]
      .filter((address) => isDue(chain.eoas.get(address), now))
      .sort((one, other) => (chain.eoas.get(one)?.at ?? 0) - (chain.eoas.get(other)?.at ?? 0))
      .slice(0, mostBalances)
    const amounts = [
      ...eoas.map((address) => readBalance(chain, client, address)),
      ...(sponsor === null
        ? []
        : entryPoints
            .filter((entryPoint) => isDue(chain.deposits.get(entryPoint), now))
            .map((entryPoint) => readDeposit(chain, client, entryPoint, sponsor.paymaster)))
    ]
    yield* Effect.all(
      [
        Effect.flatMap(client.block("latest"), (head) => noteHead(chain, head, began)),
        ...amounts.map((reading) => Effect.ignore(reading))
      ],
      { concurrency: "unbounded", discard: true }
    )
  }).pipe(
    (asking) => Wait.within(asking, patienceMillis, () => Effect.fail({ message: "no answer in time" })),
    Effect.catch((error) => noteSilence(chain, error))
  )
}

/** Without any EOA at first. */
export const make = (networks: ReadonlyArray<Bounded>): Health => {
  const own = new Set<Address>()
  const chains = networks.map(
    ({ least, profile }): Chain => ({
      profile,
      lowBalance: least,
      head: null,
      headAt: null,
      answeredAt: null,
      answerMillis: null,
      failing: null,
      eoas: new Map(),
      deposits: new Map(),
      submitting: new Set(),
      low: new Set()
    })
  )
  const byId = new Map(chains.map((chain) => [chain.profile.chainId, chain]))
  return {
    isOwn: (address) => own.has(address),
    register: (address) => Effect.sync(() => void own.add(address)),
    submits: (chainId, address) =>
      Effect.sync(() => {
        own.add(address)
        byId.get(chainId)?.submitting.add(address)
      }),
    poll: Effect.suspend(() =>
      Effect.forEach(chains, pollChain, { concurrency: "unbounded", discard: true })
    ),
    chains: () => chains
  }
}
