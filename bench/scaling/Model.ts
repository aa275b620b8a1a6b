/**
 * Simulates the path of ops through the service: processes share processors, lanes have limited transactions in flight,
 * blocks limited gas. Waits for nodes and disks take no processor time, and no time except `waitMillis`.
 */
export interface Setup {
  /** Processor time of the service per op, from request to response, in ms. */
  readonly cpuMillisPerOp: number
  /** Processors of all replicas together. */
  readonly processors: number
  /** Wait of an op for node, disk and signer, without processor time, in ms. */
  readonly waitMillis: number
  /** Submitting EOAs. */
  readonly signers: number
  /** Most transactions in flight per EOA. */
  readonly inFlight: number
  /** Seconds between blocks; 0: an immediate block per transaction. */
  readonly blockSeconds: number
  readonly blockGas: number
  /** Share of each block's gas available to the service. */
  readonly blockShare: number
  /** Highest gas limit of a transaction. */
  readonly transactionGas: number
  /** Gas of a transaction without ops, and of each op. */
  readonly gas: { readonly base: number; readonly perOp: number }
  /** Ratio of a transaction's gas limit to its use. */
  readonly limitRatio: number
  /** Most ops per transaction. */
  readonly opsPerTransaction: number
  /** Ops a second, evenly spread; or callers with one op at a time each. */
  readonly demand: { readonly perSecond: number } | { readonly callers: number }
  readonly seconds: number
}

export interface Outcome {
  readonly perSecond: number
  readonly p50: number
  readonly p95: number
  readonly p99: number
  /** Used share of the processors' time. */
  readonly processorUse: number
  /** Used share of the available block gas. */
  readonly gasUse: number
  readonly opsPerTransaction: number
  /** Unanswered ops at the end: more than a moment's worth shows excess demand. */
  readonly waiting: number
}

interface Op {
  readonly began: number
  readonly signer: number
}

interface Transaction {
  readonly ops: ReadonlyArray<Op>
  readonly gas: number
  readonly limit: number
}

/** A priority queue by due time, as a heap. */
class Agenda<A> {
  private readonly items: Array<{ readonly at: number; readonly order: number; readonly what: A }> = []
  private order = 0

  private isBefore(one: number, other: number): boolean {
    const [a, b] = [this.items[one], this.items[other]]
    if (a === undefined || b === undefined) return false
    return a.at < b.at || (a.at === b.at && a.order < b.order)
  }

  private swap(one: number, other: number): void {
    const [a, b] = [this.items[one], this.items[other]]
    if (a === undefined || b === undefined) return
    this.items[one] = b
    this.items[other] = a
  }

  add(at: number, what: A): void {
    this.items.push({ at, order: this.order++, what })
    let place = this.items.length - 1
    while (place > 0 && this.isBefore(place, (place - 1) >> 1)) {
      this.swap(place, (place - 1) >> 1)
      place = (place - 1) >> 1
    }
  }

  take(): { readonly at: number; readonly what: A } | undefined {
    const [first] = this.items
    const last = this.items.pop()
    if (first === undefined || last === undefined || this.items.length === 0) return first
    this.items[0] = last
    let place = 0
    for (;;) {
      const [left, right] = [2 * place + 1, 2 * place + 2]
      let least = place
      if (left < this.items.length && this.isBefore(left, least)) least = left
      if (right < this.items.length && this.isBefore(right, least)) least = right
      if (least === place) return first
      this.swap(place, least)
      place = least
    }
  }
}

type Event =
  | { readonly kind: "asked"; readonly op: Op }
  | { readonly kind: "prepared"; readonly op: Op }
  | { readonly kind: "block" }

/** Ops per transaction: its limit binds, not its use. */
export const opsOf = ({ gas, limitRatio, opsPerTransaction, transactionGas }: Setup): number =>
  Math.max(1, Math.min(opsPerTransaction, Math.floor((transactionGas / limitRatio - gas.base) / gas.perOp)))

const quantile = (sorted: ReadonlyArray<number>, part: number): number =>
  sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0

export const simulate = (setup: Setup): Outcome => {
  const { blockGas, blockSeconds, blockShare, demand, gas, limitRatio, signers } = setup
  const agenda = new Agenda<Event>()
  const end = setup.seconds * 1_000
  const free = Array.from({ length: setup.processors }, () => 0)
  const waiting = Array.from({ length: signers }, (): Array<Op> => [])
  const flying = Array.from({ length: signers }, (): Array<Transaction> => [])
  const most = opsOf(setup)
  const latencies: Array<number> = []
  const totals = { processor: 0, gas: 0, transactions: 0, carried: 0, asked: 0, blocks: 0 }
  let next = 0
  const ask = (at: number) => {
    totals.asked += 1
    agenda.add(at, { kind: "asked", op: { began: at, signer: next++ % signers } })
  }
  if ("callers" in demand) for (let n = 0; n < demand.callers; n += 1) ask(0)
  else for (let at = 0; at < end; at += 1_000 / demand.perSecond) ask(at)
  if (blockSeconds > 0) agenda.add(blockSeconds * 1_000, { kind: "block" })

  /** Half of an op's work precedes its transaction, half follows it. */
  const work = (at: number): number => {
    const processor = free.indexOf(Math.min(...free))
    const begins = Math.max(at, free[processor] ?? 0)
    const ends = begins + setup.cpuMillisPerOp / 2
    free[processor] = ends
    totals.processor += setup.cpuMillisPerOp / 2
    return ends
  }
  const land = (at: number, { gas: used, ops }: Transaction) => {
    totals.gas += used
    for (const op of ops) {
      const done = work(at)
      if (done > end) continue
      latencies.push(done - op.began)
      if ("callers" in demand) ask(done)
    }
  }
  const send = (at: number, signer: number) => {
    const [queue, sent] = [waiting[signer] ?? [], flying[signer] ?? []]
    while (queue.length > 0 && sent.length < setup.inFlight) {
      const ops = queue.splice(0, most)
      const used = gas.base + gas.perOp * ops.length
      totals.transactions += 1
      totals.carried += ops.length
      const transaction = { ops, gas: used, limit: used * limitRatio }
      if (blockSeconds === 0) land(at, transaction)
      else sent.push(transaction)
    }
  }
  /** Mines each signer's oldest transaction in turn, while the block has room for its limit. */
  const mine = (at: number) => {
    totals.blocks += 1
    let left = blockGas * blockShare
    for (let isMoving = true; isMoving; ) {
      isMoving = false
      for (const sent of flying) {
        const [first] = sent
        if (first === undefined || first.limit > left) continue
        sent.shift()
        left -= first.gas
        isMoving = true
        land(at, first)
      }
    }
    for (let signer = 0; signer < signers; signer += 1) send(at, signer)
    agenda.add(at + blockSeconds * 1_000, { kind: "block" })
  }
  for (;;) {
    const due = agenda.take()
    if (due === undefined || due.at > end) break
    switch (due.what.kind) {
      case "asked":
        agenda.add(work(due.at) + setup.waitMillis, { kind: "prepared", op: due.what.op })
        break
      case "prepared":
        ;(waiting[due.what.op.signer] ?? []).push(due.what.op)
        send(due.at, due.what.op.signer)
        break
      case "block":
        mine(due.at)
    }
  }
  const sorted = latencies.sort((one, other) => one - other)
  return {
    perSecond: sorted.length / setup.seconds,
    p50: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    p99: quantile(sorted, 0.99),
    processorUse: Math.min(1, totals.processor / end / setup.processors),
    gasUse: totals.blocks === 0 ? 0 : totals.gas / (totals.blocks * blockGas * blockShare),
    opsPerTransaction: totals.transactions === 0 ? 0 : totals.carried / totals.transactions,
    waiting: totals.asked - sorted.length
  }
}
