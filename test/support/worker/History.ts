import * as Choose from "../../../src/application/lanes/worker/rules/Choose.js"
import type { Candidate } from "../../../src/application/lanes/worker/rules/Queue.js"
import * as Reconcile from "../../../src/application/lanes/worker/rules/Reconcile.js"
import * as Make from "../journal/Make.js"
import { candidate, entryPoint } from "./Candidates.js"

/**
 * Random histories of one lane: a chain with a pool and reorganisations, a journal that may be replaced by an old
 * backup, foreign users of the key, and the worker's decisions as plain functions. The end must hold: no work is done
 * twice, and none is reported done or failed wrongly.
 */

interface Transaction {
  readonly nonce: bigint
  readonly version: number
  readonly ops: ReadonlyArray<{
    readonly wallet: number
    readonly key: number
    readonly sequence: bigint
    readonly call: number
  }>
  readonly direct: number | null
}

interface Element {
  readonly id: number
  readonly kind: "op" | "direct"
  readonly wallet: number
  state: "waiting" | "ready" | "sent" | "included" | "final" | "failed"
  exposed: boolean
  key: number | null
  sequence: bigint
}

interface Entry {
  readonly transaction: Transaction
  readonly ids: ReadonlyArray<number>
  state: "signed" | "mined" | "settled" | "foreign"
}

interface Journal {
  readonly elements: Map<number, Element>
  readonly transactions: Map<bigint, Entry>
  /** Versions of foreign transactions that were read. */
  readonly seen: Set<string>
}

export interface Ending {
  readonly twice: ReadonlyArray<number>
  readonly misreported: ReadonlyArray<number>
  readonly open: number
  readonly done: number
  readonly isRestored: boolean
  readonly hasDirects: boolean
}

export interface Options {
  readonly restores: boolean
  readonly directs: boolean
  /** Drops the rule that unknown nonces hold back ops that were never exposed. */
  readonly ignoresUnknown?: boolean
}

const depth = 3
const most = 3

const randomOf = (seed: number) => {
  let state = seed + 0x6d2b79f5
  const next = (): number => {
    state = Math.trunc(state + 0x6d2b79f5)
    let t = Math.imul(state ^ (state >>> 15), 1 | state)
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296
  }
  const upTo = (below: number): number => Math.floor(next() * below)
  const pick = <A>(some: ReadonlyArray<A>): A => some[upTo(some.length)] as A
  return { next, upTo, pick }
}

const placeOf = (wallet: number, key: number): string => `${wallet} ${key}`
const copyOf = (journal: Journal): Journal => ({
  elements: new Map([...journal.elements].map(([id, element]) => [id, { ...element }])),
  transactions: new Map([...journal.transactions].map(([nonce, entry]) => [nonce, { ...entry }])),
  seen: new Set(journal.seen)
})

const makeChain = (random: ReturnType<typeof randomOf>) => {
  const blocks: Array<Transaction> = []
  const pool = new Map<bigint, Array<Transaction>>()
  let high = 0
  const state = (to = blocks.length) => {
    let nonce = 0n
    const sequences = new Map<string, bigint>()
    const done: Array<{
      readonly call: number
      readonly place: string
      readonly sequence: bigint
      readonly at: number
    }> = []
    for (const [at, block] of blocks.slice(0, to).entries()) {
      nonce = block.nonce + 1n
      const after = new Map(sequences)
      const made: typeof done = []
      const isWhole = block.ops.every(({ call, key, sequence, wallet }) => {
        const place = placeOf(wallet, key)
        if ((after.get(place) ?? 0n) !== sequence) return false
        after.set(place, sequence + 1n)
        made.push({ call, place, sequence, at })
        return true
      })
      if (isWhole) {
        for (const [place, sequence] of after) sequences.set(place, sequence)
        done.push(...made)
      }
      if (block.direct !== null) done.push({ call: block.direct, place: "", sequence: 0n, at })
    }
    return { nonce, sequences, done }
  }
  const offer = (transaction: Transaction): void => {
    const known = pool.get(transaction.nonce) ?? []
    if (!known.includes(transaction)) pool.set(transaction.nonce, [...known, transaction])
  }
  return {
    blocks,
    pool,
    state,
    offer,
    latest: () => state().nonce,
    pending: () => {
      let nonce = state().nonce
      while ((pool.get(nonce)?.length ?? 0) > 0) nonce += 1n
      return nonce
    },
    mine: () => {
      const waiting = pool.get(state().nonce) ?? []
      if (waiting.length === 0) return
      blocks.push(random.pick(waiting))
      high = Math.max(high, blocks.length)
    },
    reorganise: (count: number, drops: boolean) => {
      const most = Math.min(count, blocks.length, blocks.length - (high - depth + 1))
      for (let left = most; left > 0; left -= 1) {
        const block = blocks.pop()
        if (block !== undefined && !drops) offer(block)
      }
    },
    isSettled: (at: number) => at <= blocks.length - depth
  }
}

export const run = (seed: number, options: Options): Ending => {
  const random = randomOf(seed)
  const chain = makeChain(random)
  let journal: Journal = { elements: new Map(), transactions: new Map(), seen: new Set() }
  let saved: Journal | null = null
  let isRestored = false
  let reconcile = Reconcile.clear
  const held = new Set<number>()
  let lastId = 0

  const blockOf = (nonce: bigint) => chain.blocks.findIndex((block) => block.nonce === nonce)
  const isKnown = (nonce: bigint): boolean => {
    if (journal.transactions.has(nonce)) return true
    const block = chain.blocks[blockOf(nonce)]
    return block !== undefined && journal.seen.has(`${nonce} ${block.version}`)
  }
  const look = (): void => {
    reconcile = Reconcile.step(reconcile, {
      _tag: "compared",
      latest: chain.latest(),
      pending: chain.pending(),
      from: 0n,
      isKnown
    })
  }
  const maySign = () => options.ignoresUnknown === true || Reconcile.maySign(reconcile)
  /** The time follows from accepted work. */
  const mayGiveUp = (id: number) => options.ignoresUnknown === true || Reconcile.mayGiveUp(reconcile, 0, id)

  /**
   * Reads the users of unknown nonces: adopts the journal's own, and holds an element whose call another transaction
   * makes.
   */
  const explain = (): void => {
    for (const nonce of Reconcile.readable(reconcile, chain.latest())) {
      if (isKnown(nonce)) continue
      const block = chain.blocks[blockOf(nonce)]
      if (block === undefined) continue
      const ids: Array<number> = []
      for (const element of journal.elements.values()) {
        if (element.kind === "direct") {
          if (ids.length === 0 && element.state === "ready" && element.id === block.direct)
            ids.push(element.id)
          continue
        }
        if (element.state !== "waiting" && element.state !== "ready") continue
        for (const op of block.ops) {
          if (op.wallet !== element.wallet || op.call !== element.id) continue
          const isOwn =
            element.state === "ready" && op.key === element.key && op.sequence === element.sequence
          if (isOwn) ids.push(element.id)
          else held.add(element.id)
        }
      }
      const isOurs = block.ops.length > 0 || block.direct !== null
      if (ids.length > 0) {
        journal.transactions.set(nonce, { transaction: block, ids, state: "signed" })
        for (const id of ids) {
          const element = journal.elements.get(id)
          if (element !== undefined) Object.assign(element, { state: "sent", exposed: true })
        }
      } else journal.seen.add(`${nonce} ${block.version}`)
      reconcile = Reconcile.step(reconcile, { _tag: "read", nonce, isOurs, at: lastId, now: 0 })
    }
    look()
  }

  const landed = ({ id, key, sequence, wallet }: Element) =>
    chain
      .state()
      .done.find(
        (each) => each.call === id && each.place === placeOf(wallet, key ?? -1) && each.sequence === sequence
      )
  const freeKey = (wallet: number): number | null => {
    const used = new Set(
      [...journal.elements.values()]
        .filter((each) => each.wallet === wallet && ["ready", "sent", "included"].includes(each.state))
        .map(({ key }) => key)
    )
    return [0, 1, 2, 3].find((key) => !used.has(key)) ?? null
  }
  const assign = (elements: ReadonlyArray<Element>, wallet: number): boolean => {
    const key = freeKey(wallet)
    if (key === null) return false
    const sequence = chain.state().sequences.get(placeOf(wallet, key)) ?? 0n
    const isTaken = [...journal.elements.values()].some(
      (each) =>
        each.wallet === wallet && each.key === key && each.sequence === sequence && each.state !== "failed"
    )
    if (isTaken) return false
    for (const [at, element] of elements.entries())
      Object.assign(element, { key, sequence: sequence + BigInt(at), state: "ready" })
    return true
  }

  const accept = (): void => {
    const kind = random.pick(
      options.directs ? ["op", "op", "op", "direct", "wait"] : ["op", "op", "op", "wait"]
    )
    const wallet = random.upTo(2)
    const elements: Array<Element> = []
    for (let left = kind === "direct" ? 1 : 1 + random.upTo(3); left > 0; left -= 1) {
      lastId += 1
      elements.push({
        id: lastId,
        kind: kind === "direct" ? "direct" : "op",
        wallet,
        state: kind === "direct" ? "ready" : "waiting",
        exposed: false,
        key: null,
        sequence: 0n
      })
    }
    if (kind === "op" && !assign(elements, wallet)) return
    for (const element of elements) journal.elements.set(element.id, element)
  }

  const candidateOf = ({ exposed, id, key, kind, sequence, wallet }: Element): Candidate =>
    candidate({
      opId: id,
      requestId: `r${id}`,
      index: 0,
      route: kind === "direct" ? "direct" : entryPoint,
      company: kind === "direct" ? `direct ${id}` : "ops",
      wallet: kind === "direct" ? Make.address(0x999) : Make.address(wallet),
      key: BigInt(kind === "direct" ? id : (key ?? 0)),
      sequence,
      exposed
    })
  const readyOnes = () =>
    [...journal.elements.values()].filter(({ id, state }) => state === "ready" && !held.has(id))
  const choiceOf = (elements: ReadonlyArray<Element>) => {
    const inFlight = [...journal.elements.values()].filter(({ state }) => state === "sent")
    return Choose.choose(elements.map(candidateOf), {
      route: null,
      keysInFlight: new Set(inFlight.map((each) => Choose.keyOf(candidateOf(each)))),
      isCalling: false,
      sequences: new Map(
        elements.map((each) => [
          Choose.keyOf(candidateOf(each)),
          each.kind === "direct"
            ? 0n
            : (chain.state().sequences.get(placeOf(each.wallet, each.key ?? 0)) ?? 0n)
        ])
      ),
      maySign: maySign(),
      isHeld: () => false,
      leads: () => false,
      isAlone: () => false,
      most: 256,
      capacity: { start: 0, add: (total) => total + 1 }
    })
  }

  /** Outcomes of ready ops whose nonces are used. */
  const judge = (used: ReadonlyArray<Candidate>): void => {
    for (const { opId } of used) {
      const element = journal.elements.get(opId)
      if (element === undefined) continue
      if (landed(element) !== undefined) {
        element.state = "included"
        continue
      }
      const to = Math.max(chain.blocks.length - depth + 1, 0)
      const isForGood =
        (chain.state(to).sequences.get(placeOf(element.wallet, element.key ?? 0)) ?? 0n) > element.sequence
      const isElsewhere = chain.state().done.some(({ call }) => call === element.id)
      // A retry might do it twice: the operator decides.
      if (isElsewhere) held.add(element.id)
      else if (isForGood && mayGiveUp(element.id))
        Object.assign(element, { key: null, state: "waiting", exposed: false })
    }
  }

  const work = (isCalm: boolean): void => {
    explain()
    // A transaction lost from the pool is never mined: the operator fills its nonce.
    const stuck = chain.latest()
    if (
      isCalm &&
      !maySign() &&
      (chain.pool.get(stuck)?.length ?? 0) === 0 &&
      !journal.transactions.has(stuck)
    ) {
      const filler: Transaction = { nonce: stuck, version: random.next(), ops: [], direct: null }
      journal.transactions.set(stuck, { transaction: filler, ids: [], state: "signed" })
      chain.pool.set(stuck, [filler])
    }
    judge(choiceOf(readyOnes()).used)
    const open = [...journal.transactions.values()].filter(({ state }) => state === "signed").length
    const choice = choiceOf(readyOnes())
    if (open >= most || choice.ops.length === 0) return
    let nonce = chain.pending()
    while (journal.transactions.has(nonce)) nonce += 1n
    const chosen = choice.ops.flatMap(({ opId }) => journal.elements.get(opId) ?? [])
    const transaction: Transaction = {
      nonce,
      version: random.next(),
      ops: chosen
        .filter(({ kind }) => kind === "op")
        .map(({ id, key, sequence, wallet }) => ({ wallet, key: key ?? 0, sequence, call: id })),
      direct: chosen.find(({ kind }) => kind === "direct")?.id ?? null
    }
    // It stops, or is fenced, before the record.
    if (random.next() < 0.1) return
    journal.transactions.set(nonce, { transaction, ids: chosen.map(({ id }) => id), state: "signed" })
    for (const element of chosen) Object.assign(element, { state: "sent", exposed: true })
    // Otherwise it stops before the bytes leave.
    if (random.next() < 0.85) chain.offer(transaction)
  }

  const settleOne = (nonce: bigint, entry: Entry): void => {
    const at = blockOf(nonce)
    const block = chain.blocks[at]
    const own = entry.ids.flatMap((id) => journal.elements.get(id) ?? [])
    if (entry.state === "signed" && nonce >= chain.latest()) chain.offer(entry.transaction)
    if (entry.state !== "signed" && entry.state !== "mined") return
    if (block === undefined) {
      if (entry.state === "mined") {
        entry.state = "signed"
        for (const element of own) if (element.state === "included") element.state = "sent"
      }
      return
    }
    const isFinal = chain.isSettled(at)
    if (block.version !== entry.transaction.version) {
      if (!isFinal) return
      entry.state = "foreign"
      for (const element of own)
        if (element.state === "sent" || element.state === "included") {
          if (element.kind === "direct") element.state = block.direct === element.id ? "final" : "ready"
          else element.state = landed(element) === undefined ? "ready" : "included"
        }
      return
    }
    entry.state = isFinal ? "settled" : "mined"
    for (const element of own) {
      if (element.kind === "direct" || landed(element) !== undefined)
        element.state = isFinal ? "final" : "included"
      else if (isFinal && (element.state === "sent" || element.state === "included")) element.state = "ready"
    }
  }

  const settle = (): void => {
    for (const [nonce, entry] of journal.transactions) settleOne(nonce, entry)
    for (const element of journal.elements.values()) {
      if (element.state !== "included" || element.kind === "direct") continue
      const isCarried = [...journal.transactions.values()].some(
        ({ ids, state }) => ids.includes(element.id) && (state === "signed" || state === "mined")
      )
      if (isCarried) continue
      const seen = landed(element)
      if (seen === undefined) element.state = "ready"
      else if (chain.isSettled(seen.at)) element.state = "final"
    }
  }

  const giveUp = (): void => {
    explain()
    const some = [...journal.elements.values()].filter(
      ({ exposed, id, kind, state }) => kind === "op" && state === "ready" && !exposed && mayGiveUp(id)
    )
    if (some.length === 0) return
    const element = random.pick(some)
    // Looked up on the chain first.
    element.state = landed(element) === undefined ? "failed" : "included"
    if (element.state !== "failed") return
    for (const { op, sequence } of choiceOf(readyOnes()).renumbered) {
      const moved = journal.elements.get(op.opId)
      if (moved !== undefined) moved.sequence = sequence
    }
  }

  const open = (): void => {
    explain()
    const waiting = [...journal.elements.values()].find(
      ({ id, state }) => state === "waiting" && !held.has(id)
    )
    if (waiting !== undefined && maySign()) assign([waiting], waiting.wallet)
  }
  const restore = (): void => {
    if (saved === null || isRestored || !options.restores) return
    journal = copyOf(saved)
    isRestored = true
    held.clear()
    reconcile = Reconcile.clear
  }
  const acts: Readonly<Record<string, (isCalm: boolean) => void>> = {
    accept,
    open,
    work,
    mine: () => chain.mine(),
    settle,
    reorganise: () => chain.reorganise(1 + random.upTo(depth - 1), random.next() < 0.5),
    drop: () => {
      if (chain.pool.size > 0) chain.pool.delete(random.pick([...chain.pool.keys()]))
    },
    foreign: () =>
      chain.offer({
        nonce: random.next() < 0.5 ? chain.latest() : chain.pending(),
        version: random.next(),
        ops: [],
        direct: null
      }),
    giveUp,
    backup: () => {
      saved = copyOf(journal)
    },
    restore
  }

  const usual = [
    "work",
    "work",
    "work",
    "work",
    "work",
    "mine",
    "mine",
    "mine",
    "mine",
    "settle",
    "settle",
    "settle",
    "settle"
  ]
  const wild = [
    ...usual,
    "accept",
    "accept",
    "accept",
    "reorganise",
    "foreign",
    "giveUp",
    "backup",
    "restore",
    "drop",
    "open"
  ]
  const steps = 30 + random.upTo(60)
  for (let step = 0; step < steps + 160; step += 1) {
    const isCalm = step >= steps
    look()
    acts[isCalm && step % 6 === 0 ? "open" : random.pick(isCalm ? usual : wild)]?.(isCalm)
  }

  const counts = new Map<number, number>()
  for (const { call } of chain.state().done) counts.set(call, (counts.get(call) ?? 0) + 1)
  const elements = [...journal.elements.values()]
  return {
    twice: [...counts].flatMap(([call, count]) => (count > 1 ? [call] : [])),
    misreported: elements.flatMap(({ id, state }) =>
      (state === "final" && !counts.has(id)) || (state === "failed" && counts.has(id)) ? [id] : []
    ),
    open: elements.filter(
      ({ id, state }) => !["final", "failed", "included"].includes(state) && !held.has(id)
    ).length,
    done: elements.filter(({ state }) => state === "final" || state === "included").length,
    isRestored,
    hasDirects: elements.some(({ kind }) => kind === "direct")
  }
}
