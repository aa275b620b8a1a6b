import type { EventData, EventKind } from "../../../src/application/ports/journal/Events.js"
import type {
  Acceptance,
  AcceptanceResult,
  Final,
  Opening,
  PreparedOp,
  Recording,
  Replacement
} from "../../../src/application/ports/journal/Records.js"
import type { FoundInclusion } from "../../../src/application/ports/journal/RemoteSubmissions.js"
import type {
  Cancellation,
  CancellationCode,
  FailedElement,
  Idempotency,
  LeaseRequest,
  OpRecord,
  OpSettlement,
  Space
} from "../../../src/application/ports/journal/Requests.js"
import type {
  Depth,
  Lane,
  TransactionRecord,
  TransactionSettlement
} from "../../../src/application/ports/journal/Transactions.js"
import type { Bytes32 } from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"

/** The journal's docstrings over plain lists: slow, and obviously right. `"fails"` is a JournalError. */
type Failing<A> = A | "fails"

const depthOf = ({ blockNumber, confirmations }: Depth) => ({
  blockNumber: blockNumber.toString(),
  confirmations
})

interface Op {
  readonly request: string
  intent: PreparedOp
  hash: Bytes32 | null
  state: OpRecord["state"]
  tx: Bytes32 | null
  success: boolean | null
  /** The holder where no transaction of ours has it: a bundler, or none when it was only found on the chain. */
  handed: "bundler" | "found" | null
  /** Its bytes may be public. */
  exposed: boolean
  /** For ops at a bundler: it took the op, or the op was on the chain. */
  told: boolean
}

type Refusal = Exclude<AcceptanceResult, { readonly _tag: "accepted" }>

export type Element = Pick<PreparedOp, "index" | "requestId">

const pricesOf = ({ maxFeePerGas, maxPriorityFeePerGas }: Recording | Replacement) => ({
  maxFeePerGas: maxFeePerGas.toString(),
  maxPriorityFeePerGas: maxPriorityFeePerGas.toString()
})

interface Nonce {
  readonly signer: string
  readonly nonce: bigint
  state: TransactionRecord["state"]
  cost: bigint
  ops: ReadonlyArray<Op>
  direct: string | null
  versions: ReadonlyArray<Bytes32>
  mined: TransactionSettlement | null
  signedAs: number
  /** A node took it, or it was on the chain. */
  told: boolean
}

interface Request {
  readonly id: string
  readonly acceptedAt: number
  idempotency: Idempotency | null
  unopened: number
  outcome: string | null
  cancelled: CancellationCode | null
  forgotten: boolean
  declined: boolean
  failed: ReadonlyArray<FailedElement>
  events: ReadonlyArray<{ readonly kind: EventKind; readonly data: EventData }>
}

const sum = (values: ReadonlyArray<bigint>): bigint => values.reduce((total, value) => total + value, 0n)

/** One account on one chain. */
export class Model {
  private ops: Array<Op> = []
  private nonces: Array<Nonce> = []
  private requests: Array<Request> = []
  private signatures = 0
  private leases: Array<{ holder: string; place: string; key: bigint; until: number }> = []
  private authorised: Array<{ salt: Bytes32; config: Bytes32; deadline: number }> = []

  private place = (space: LeaseRequest | Space) => `${space.entryPoint} ${space.wallet}`
  private live = () => this.ops.filter((op) => op.state === "accepted" || op.state === "sent")
  private kept = () => this.ops.filter((op) => op.state !== "abandoned")
  private of = (request: string, index: number) =>
    this.kept().find((op) => op.request === request && op.intent.index === index)
  private isOpen = (it: Nonce) => it.state === "signed" || it.state === "mined"
  private carried = (op: Op) => this.nonces.some((it) => this.isOpen(it) && it.ops.includes(op))

  /** The journal chooses the key of a direct transaction: no other request has it. */
  private nonceOf = (op: PreparedOp) =>
    `${this.place(op.space)} ${op.kind === "direct" ? op.requestId : op.nonceKey} ${op.sequence}`
  private signed = (op: Op) => op.exposed || this.nonces.some((it) => it.ops.includes(op))
  /** The holder of an op's nonce or hash. */
  private ownerOf = (op: PreparedOp) =>
    this.kept().find((it) => this.nonceOf(it.intent) === this.nonceOf(op)) ??
    this.kept().find((it) => it.hash !== null && it.hash === op.userOpHash)
  private holds = (op: Op) =>
    this.ops.some(
      (it) =>
        it.request === op.request &&
        it.intent.index === op.intent.index &&
        this.nonceOf(it.intent) === this.nonceOf(op.intent) &&
        this.signed(it)
    )

  private tell(id: string, kind: EventKind, data: EventData = {}): void {
    const request = this.requests.find((it) => it.id === id)
    if (request !== undefined && !request.forgotten) request.events = [...request.events, { kind, data }]
  }

  /** Adds an event to each request with its elements; a request's own transaction has none. */
  private tellOf(kind: EventKind, data: EventData, ids: ReadonlyArray<string>, ops: ReadonlyArray<Op>): void {
    for (const id of ids) {
      const elements = ops.filter((op) => op.request === id).map((op) => op.intent.index)
      this.tell(
        id,
        kind,
        elements.length === 0 ? data : { ...data, elements: elements.sort((a, b) => a - b) }
      )
    }
  }

  /** Adds events for ops by the transactions where they landed. */
  private tellLanded(
    kind: EventKind,
    ops: ReadonlyArray<Op>,
    depths: ReadonlyArray<Depth & { readonly userOpHash: Bytes32 }> = []
  ): void {
    for (const txHash of new Set(ops.map((op) => op.tx))) {
      const own = ops.filter((op) => op.tx === txHash)
      const depth = depths.find((it) => own.some((op) => op.hash === it.userOpHash))
      const data = { txHash, ...(depth && depthOf(depth)), ...(kind === "included" && { success: true }) }
      this.tellOf(kind, data, [...new Set(own.map((op) => op.request))], own)
    }
  }

  private tellMined(kind: EventKind, row: Nonce, confirmations: number | null): void {
    const { blockNumber, success, txHash } = row.mined ?? Make.mined(row.nonce)
    const data = {
      txHash,
      ...(confirmations !== null && depthOf({ blockNumber, confirmations })),
      ...(kind === "included" && { success })
    }
    this.tellOf(kind, data, this.concerned(row), row.ops)
  }

  /** Its ops that have landed in another transaction. */
  private elsewhere = (row: Nonce): ReadonlyArray<Op> =>
    row.ops.filter((op) => op.state === "settled" && op.tx !== row.mined?.txHash)

  lease(request: LeaseRequest, now: number): ReadonlyArray<bigint> | null {
    const place = this.place(request)
    const taken = [
      ...this.leases.filter((it) => it.until > now && it.place === place).map((it) => it.key),
      ...this.live()
        .filter((op) => this.place(op.intent.space) === place)
        .map((op) => op.intent.nonceKey)
    ]
    const free: Array<bigint> = []
    for (let key = request.keys.from; key <= request.keys.to; key++) if (!taken.includes(key)) free.push(key)
    if (free.length < request.count) return null
    const chosen = free.slice(0, request.count)
    for (const key of chosen)
      this.leases.push({ holder: request.holder, place, key, until: now + request.ttlMillis })
    return chosen
  }

  release(holder: string): void {
    this.leases = this.leases.filter((it) => it.holder !== holder)
  }

  /** The refusal that keeps elements from becoming ops; null: they become ops, with their authorisations. */
  private open({ deployments, funds, ops, requestId }: Omit<Opening, "failed" | "schedule">): Refusal | null {
    const own = new Set<string>()
    for (const op of ops) {
      const owner = this.ownerOf(op)
      if (owner !== undefined || own.has(this.nonceOf(op)))
        return { _tag: "nonceTaken", index: op.index, isSettled: owner?.state === "settled" }
      own.add(this.nonceOf(op))
    }
    for (const [at, { index, kind, space }] of ops.entries()) {
      if (kind === "direct") continue
      const held = this.live().filter(
        (op) => op.intent.space.wallet === space.wallet && op.intent.kind !== "direct"
      )
      const others = sum(held.filter((op) => op.request !== requestId).map((op) => op.intent.reserve))
      const before = sum(held.filter((op) => op.request === requestId).map((op) => op.intent.reserve))
      const fresh = sum(
        ops
          .slice(0, at + 1)
          .filter((op) => op.space.wallet === space.wallet)
          .map((op) => op.reserve)
      )
      const available = funds.find((it) => this.place(it.space) === this.place(space))?.available ?? -1n
      if (others > 0n && others + before + fresh > available)
        return { _tag: "reserved", index, reserved: others }
    }
    const before = this.authorised
    for (const [deployment, it] of deployments.entries()) {
      const row = this.authorised.find((other) => other.salt === it.create2Salt)
      if (row !== undefined && row.config !== it.configHash && row.deadline >= it.chainTime) {
        this.authorised = before
        return { _tag: "otherConfiguration", deployment }
      }
      const kept = row?.config === it.configHash ? row.deadline : 0
      this.authorised = [
        ...this.authorised.filter((other) => other !== row),
        { salt: it.create2Salt, config: it.configHash, deadline: Math.max(kept, it.deadline) }
      ]
    }
    for (const intent of ops) this.write(requestId, intent, false)
    return null
  }

  private write(request: string, intent: PreparedOp, exposed: boolean): void {
    this.ops.push({
      request,
      intent,
      hash: intent.userOpHash,
      state: "accepted",
      tx: null,
      success: null,
      handed: null,
      exposed,
      told: false
    })
  }

  private contradicts = ({ failed, ops }: Pick<Opening, "failed" | "ops">): boolean =>
    failed.some((it) => ops.some((op) => op.index === it.index)) ||
    new Set(ops.map((op) => op.index)).size < ops.length

  accept(acceptance: Acceptance, now: number): Failing<AcceptanceResult> {
    const { failed, idempotency, requestId, unopened } = acceptance
    if (this.contradicts(acceptance)) return "fails"
    const known = this.requests.find((it) => it.id === requestId)
    if (known !== undefined) return { _tag: known.forgotten ? "over" : "accepted" }
    const owner = this.requests.find(
      (it) => it.idempotency !== null && it.idempotency.key === idempotency?.key
    )
    if (owner?.idempotency != null)
      return { _tag: "known", requestId: owner.id, bodyHash: owner.idempotency.bodyHash }
    const refusal = this.open(acceptance)
    if (refusal !== null) return refusal
    this.requests.push({
      id: requestId,
      acceptedAt: now,
      idempotency,
      unopened,
      outcome: null,
      cancelled: null,
      forgotten: false,
      declined: false,
      failed,
      events: []
    })
    this.tell(requestId, "accepted")
    return { _tag: "accepted" }
  }

  openElements(opening: Opening): Failing<AcceptanceResult> {
    const { failed, ops, requestId } = opening
    const request = this.requests.find((it) => it.id === requestId)
    if (this.contradicts(opening) || request === undefined) return "fails"
    if (request.outcome !== null || request.cancelled !== null) return { _tag: "over" }
    if (ops.some((op) => this.of(requestId, op.index) !== undefined)) return "fails"
    const refusal = this.open(opening)
    if (refusal !== null) return refusal
    const news = failed.filter((it) => request.failed.every((old) => old.index !== it.index))
    request.unopened = Math.max(0, request.unopened - ops.length - news.length)
    this.merge(request, failed)
    return { _tag: "accepted" }
  }

  private merge(request: Request, failed: ReadonlyArray<FailedElement>): void {
    for (const it of failed) request.failed = [...request.failed.filter((old) => old.index !== it.index), it]
  }

  decline(requestId: string, now: number): Lane | null {
    const request = this.requests.find((it) => it.id === requestId)
    if (request !== undefined) return request.forgotten ? null : Make.lane
    const rest = { idempotency: null, unopened: 0, outcome: "none", forgotten: true, declined: true }
    this.requests.push({ id: requestId, acceptedAt: now, failed: [], events: [], cancelled: null, ...rest })
    return null
  }

  fail(requestId: string, failed: ReadonlyArray<FailedElement>, done: ReadonlyArray<number>): void {
    const request = this.requests.find((it) => it.id === requestId)
    if (request === undefined || request.outcome !== null) return
    const indexes = [...failed.map(({ index }) => index), ...done]
    const rows = indexes.map((index) => this.of(requestId, index))
    const news = failed.filter((_, at) => rows[at]?.state !== "settled")
    const opened = [...news.map(({ index }) => index), ...done].filter(
      (index) => this.of(requestId, index) === undefined && request.failed.every((old) => old.index !== index)
    )
    for (const op of rows) if (op?.state === "accepted") op.state = "abandoned"
    request.unopened = Math.max(0, request.unopened - new Set(opened).size)
    this.merge(request, news)
  }

  answer({ outcome, requestId, sequence }: Final): string | null {
    const request = this.requests.find((it) => it.id === requestId)
    if (request === undefined) return null
    if (request.outcome !== null) return request.forgotten ? outcome : request.outcome
    if (!this.hasEnded(request) || sequence !== request.events.length) return null
    request.outcome = outcome
    this.tell(requestId, "final", { httpStatus: 200 })
    return outcome
  }

  openRequests(): ReadonlyArray<string> {
    return this.requests.flatMap((it) => (it.outcome === null ? it.id : []))
  }

  private hasEnded = ({ cancelled, id, unopened }: Request): boolean =>
    this.live().every((op) => op.request !== id) && (cancelled !== null || unopened === 0)

  /** The open requests at their end. */
  ended(ids: ReadonlyArray<string>): ReadonlyArray<string> {
    return this.requests.flatMap((it) =>
      ids.includes(it.id) && it.outcome === null && this.hasEnded(it) ? it.id : []
    )
  }

  cancel(requestId: string, { code, onlyUnsigned, outcome }: Cancellation): "final" | "kept" | null {
    const request = this.requests.find((it) => it.id === requestId)
    if (request === undefined || request.forgotten) return null
    if (request.outcome !== null) return "final"
    const ops = this.ops.filter((op) => op.request === requestId)
    const alive = this.kept().filter((op) => op.request === requestId)
    const hasLeft =
      alive.some((op) => op.state !== "accepted") ||
      ops.some(this.signed) ||
      this.nonces.some((it) => it.direct === requestId)
    if (hasLeft && onlyUnsigned) return "kept"
    for (const op of alive)
      if (op.state === "accepted" && !this.holds(op)) {
        op.state = "abandoned"
        op.tx = null
      }
    request.cancelled = code
    if (hasLeft) return "kept"
    request.outcome = outcome
    this.tell(requestId, code === "request_expired" ? "expired" : "cancelled")
    return "final"
  }

  forget(before: number): void {
    this.requests = this.requests.filter((it) => !it.declined || it.acceptedAt >= before)
    for (const it of this.requests) {
      const ops = this.ops.filter((op) => op.request === it.id)
      const own = this.nonces.filter((tx) => tx.direct === it.id || tx.ops.some((op) => ops.includes(op)))
      const isOver =
        ops.every((op) => !this.live().includes(op) && op.handed === null) && !own.some(this.isOpen)
      if (it.forgotten || it.outcome === null || it.acceptedAt >= before || !isOver) continue
      it.forgotten = true
      this.leases = this.leases.filter(({ holder }) => holder !== it.id)
      it.events = []
      it.idempotency = null
      this.ops = this.ops.filter((op) => !ops.includes(op))
      for (const tx of own) {
        tx.ops = tx.ops.filter((op) => !ops.includes(op))
        if (tx.ops.length > 0) continue
        tx.direct = null
        if (tx.versions.length < 2) this.nonces = this.nonces.filter((other) => other !== tx)
      }
    }
  }

  private readyOf = ({ index, requestId }: Element): Op | undefined => {
    const op = this.of(requestId, index)
    return op?.state === "accepted" ? op : undefined
  }

  /** Whether another op has the hash. */
  private clashes = (hash: Bytes32 | null, op: Op): boolean =>
    hash !== null && this.kept().some((it) => it !== op && it.hash === hash)

  /** The element's row after another preparation: a new row where the old one stays. */
  private overwrite(op: Op, intent: PreparedOp, exposed: boolean | null): void {
    if (exposed === null) Object.assign(op, { intent, hash: intent.userOpHash })
    else {
      op.state = "abandoned"
      this.write(op.request, intent, exposed)
    }
  }

  /** Whether it is renewed. */
  renew(prepared: PreparedOp): Failing<boolean> {
    const op = this.readyOf(prepared)
    if (op === undefined || op.intent.kind === "direct") return false
    if (this.nonceOf(op.intent) !== this.nonceOf(prepared)) return false
    if (this.clashes(prepared.userOpHash, op)) return "fails"
    this.overwrite(op, prepared, op.exposed && op.hash !== prepared.userOpHash ? true : null)
    return true
  }

  renumber(prepared: PreparedOp): "renumbered" | "notReady" | "nonceTaken" {
    const op = this.readyOf(prepared)
    if (op === undefined || this.place(op.intent.space) !== this.place(prepared.space)) return "notReady"
    op.state = "abandoned"
    const owner = this.ownerOf(prepared)
    op.state = "accepted"
    if (owner !== undefined) return "nonceTaken"
    this.overwrite(op, prepared, op.exposed ? false : null)
    return "renumbered"
  }

  publish(element: Element): void {
    const op = this.readyOf(element)
    if (op !== undefined) op.exposed = true
  }

  /** Whether it is at the bundler. */
  handOver(element: Element, stray: Bytes32): Failing<boolean> {
    const op = this.readyOf(element)
    if (op === undefined || op.intent.kind === "direct") return false
    const hash = op.hash ?? stray
    if (this.clashes(hash, op)) return "fails"
    Object.assign(op, { state: "sent", handed: "bundler", told: false, exposed: true, hash, tx: null })
    this.tellOf("signed", {}, [op.request], [op])
    return true
  }

  takeBack(userOpHash: Bytes32, isDead: boolean): void {
    const [op] = this.named(Make.lane.signer, [userOpHash])
    if (op?.state !== "sent" || this.carried(op)) return
    const failed = this.requests.find((it) => it.id === op.request)?.failed ?? []
    const isOver = isDead && failed.some((it) => it.index === op.intent.index)
    const state = isOver ? "abandoned" : "accepted"
    Object.assign(op, { state, handed: null, tx: null, exposed: !isDead })
  }

  /** Returns the ops that it has settled. */
  private settleOps(ops: ReadonlyArray<Op>, outcomes: ReadonlyArray<OpSettlement>): ReadonlyArray<Op> {
    return outcomes.flatMap(({ success, txHash, userOpHash }) =>
      ops
        .filter((it) => it.hash === userOpHash && this.live().includes(it))
        .map((op) => Object.assign(op, { state: "settled", tx: txHash, success }))
    )
  }

  private named = (authority: string, hashes: ReadonlyArray<Bytes32>) =>
    this.kept().filter(
      (op) => op.hash !== null && hashes.includes(op.hash) && op.intent.space.authority === authority
    )

  recordTaken(authority: string, hashes: ReadonlyArray<Bytes32>): void {
    const fresh = this.named(authority, hashes).filter(
      (op) => op.state === "sent" && op.handed !== null && !op.told
    )
    for (const op of fresh) op.told = true
    this.tellOf("submitted", {}, [...new Set(fresh.map((op) => op.request))], fresh)
  }

  recordInclusions(authority: string, outcomes: ReadonlyArray<FoundInclusion>): ReadonlyArray<string> {
    const ops = this.named(
      authority,
      outcomes.map((it) => it.userOpHash)
    )
    const settled = this.settleOps(ops, outcomes)
    const own = settled.filter((op) => !this.carried(op))
    this.tellLanded(
      "submitted",
      own.filter((op) => op.handed === null || !op.told)
    )
    for (const op of own) op.told = true
    this.tellLanded("included", settled, outcomes)
    const isFinal = (op: Op) => outcomes.some((it) => it.userOpHash === op.hash && it.final)
    for (const op of own) op.handed = isFinal(op) ? null : (op.handed ?? "found")
    this.tellLanded("settled", own.filter(isFinal), outcomes)
    return [...new Set(ops.map((op) => op.request))].sort()
  }

  revertInclusions(authority: string, hashes: ReadonlyArray<Bytes32>): ReadonlyArray<string> {
    const ops = this.named(authority, hashes).filter((op) => op.handed !== null)
    const landed = ops.filter((it) => it.state === "settled")
    this.tellLanded("reopened", landed)
    for (const op of landed) {
      const isFound = op.handed === "found"
      Object.assign(op, { state: isFound ? "accepted" : "sent", tx: null, success: null })
      if (isFound) Object.assign(op, { handed: null, exposed: true })
    }
    const concerned = [...new Set(ops.map((op) => op.request))].sort()
    for (const it of this.requests) if (concerned.includes(it.id)) it.outcome = null
    return concerned
  }

  finaliseInclusions(
    authority: string,
    landed: ReadonlyArray<Depth & { readonly userOpHash: Bytes32 }>
  ): void {
    const hashes = landed.map((it) => it.userOpHash)
    const over = this.named(authority, hashes).filter((op) => op.state === "settled" && op.handed !== null)
    for (const op of over) op.handed = null
    this.tellLanded("settled", over, landed)
  }

  /** Hash and landing of every watched op. */
  remoteSubmissions(): ReadonlyArray<readonly [Bytes32 | null, Bytes32 | null]> {
    return this.ops
      .filter((op) => op.handed === "bundler" || (op.handed === "found" && op.state === "settled"))
      .map((op) => [op.hash, op.tx])
  }

  private lane = (signer: string) => this.nonces.filter((it) => it.signer === signer)
  private concerned = ({ direct, ops }: Nonce): ReadonlyArray<string> =>
    [...new Set([...ops.map((op) => op.request), ...(direct === null ? [] : [direct])])].sort()

  private route = ({ direct, ops }: Pick<Nonce, "direct" | "ops">) =>
    ops[0]?.intent.space.entryPoint ?? (direct === null ? null : "direct")

  /** Whether a signed transaction of the lane has another route. */
  private blocked(signer: string, it: Pick<Nonce, "direct" | "ops">): boolean {
    const signed = this.lane(signer).filter((other) => other.state === "signed")
    const routes = [it, ...signed].map(this.route).filter((route) => route !== null)
    return this.route(it) !== null && new Set(routes).size > 1
  }

  nextNonce(signer: string, chainNonce: bigint): bigint {
    let nonce = chainNonce
    while (this.nonce(signer, nonce) !== undefined) nonce++
    return nonce
  }

  private nonce = (signer: string, nonce: bigint) => this.lane(signer).find((it) => it.nonce === nonce)

  /** Result of recording ready ops; `count` is the number of given-up ops. */
  record(
    recording: Recording,
    elements: ReadonlyArray<Element>,
    stray: Bytes32
  ): Failing<{ readonly _tag: string; readonly reserved?: bigint; readonly count?: number }> {
    const { balance, chainNonce, maxCost, nonce, signer, txHash } = recording
    const there = this.nonce(signer, nonce)
    if (there !== undefined) return { _tag: there.versions.includes(txHash) ? "recorded" : "nonceUsed" }
    if (this.nextNonce(signer, chainNonce) !== nonce) return { _tag: "nonceUsed" }
    const ops = elements.flatMap((element) => this.readyOf(element) ?? [])
    const places = new Set(ops.map((op) => op.intent.space.entryPoint))
    if (places.size > 1 || (ops.length > 1 && places.has("direct"))) return "fails"
    const direct = places.has("direct") ? (ops[0]?.request ?? null) : null
    if (this.blocked(signer, { direct, ops })) return { _tag: "otherRoute" }
    const signed = this.lane(signer).filter((it) => it.state === "signed")
    const reserved = sum(signed.map((it) => it.cost))
    if (reserved + maxCost > balance) return { _tag: "insufficientFunds", reserved }
    if (ops.length < elements.length) return { _tag: "givenUp", count: elements.length - ops.length }
    const nameless = ops.filter((op) => op.hash === null && op.intent.kind !== "direct")
    if (nameless.length > 1 || nameless.some((op) => this.clashes(stray, op))) return "fails"
    for (const op of nameless) op.hash = stray
    const row: Nonce = {
      signer,
      nonce,
      state: "signed",
      cost: maxCost,
      ops,
      direct,
      versions: [txHash],
      mined: null,
      signedAs: ++this.signatures,
      told: false
    }
    this.nonces.push(row)
    for (const op of ops) Object.assign(op, { state: "sent", tx: txHash, exposed: true })
    this.tellOf("signed", { txHash, ...pricesOf(recording) }, this.concerned(row), ops)
    return { _tag: "recorded" }
  }

  replace(replacement: Replacement): boolean {
    const { addedCost, nonce, signer, txHash } = replacement
    const row = this.nonce(signer, nonce)
    if (row?.state !== "signed") return false
    if (row.versions.includes(txHash)) return true
    const replaces = row.versions.at(-1)
    this.tellOf("replaced", { txHash, replaces, ...pricesOf(replacement) }, this.concerned(row), row.ops)
    row.versions = [...row.versions, txHash]
    row.cost += addedCost
    for (const op of row.ops.filter((it) => it.state === "accepted" || it.state === "sent"))
      Object.assign(op, { state: "sent", tx: txHash })
    return true
  }

  recordSubmitted(
    signer: string,
    transactions: ReadonlyArray<{ readonly nonce: bigint; readonly txHash: Bytes32 }>
  ): void {
    for (const { nonce, txHash } of transactions) {
      const row = this.nonce(signer, nonce)
      if (row?.state !== "signed" || row.told) continue
      row.told = true
      this.tellOf("submitted", { txHash }, this.concerned(row), row.ops)
    }
  }

  private letGo(row: Nonce): void {
    for (const op of row.ops.filter((it) => it.state === "sent"))
      Object.assign(op, { state: "accepted", tx: null })
  }

  private withdraw(row: Nonce): void {
    this.tellMined("reopened", row, null)
    this.tellLanded("reopened", this.elsewhere(row))
    Object.assign(row, { state: "signed", mined: null })
    for (const op of row.ops.filter((it) => it.state !== "abandoned"))
      Object.assign(op, { state: "sent", tx: row.versions.at(-1), success: null })
    for (const it of this.requests) if (this.concerned(row).includes(it.id)) it.outcome = null
  }

  settle(
    mined: TransactionSettlement,
    ops: ReadonlyArray<OpSettlement>,
    final: boolean
  ): Failing<ReadonlyArray<string>> {
    const row = this.nonce(mined.signer, mined.nonce)
    const isSame = row?.mined?.txHash === mined.txHash
    if (row?.state === "settled" && isSame) return this.concerned(row)
    if (row === undefined || !this.isOpen(row) || !row.versions.includes(mined.txHash)) return "fails"
    if (row.mined !== null && (!isSame || row.mined.blockHash !== mined.blockHash)) this.withdraw(row)
    const isIncluded = row.state === "signed"
    Object.assign(row, { state: final ? "settled" : "mined", mined })
    if (!row.told) this.tellOf("submitted", { txHash: mined.txHash }, this.concerned(row), row.ops)
    row.told = true
    if (isIncluded) this.tellMined("included", row, mined.confirmations)
    const before = this.elsewhere(row)
    const others = this.settleOps(row.ops, ops).filter((op) => op.tx !== mined.txHash)
    for (const op of row.ops)
      if (op.intent.kind === "direct" && op.state === "sent")
        Object.assign(op, { state: "settled", tx: mined.txHash, success: mined.success })
    this.tellLanded("included", others, ops)
    if (final) {
      this.tellMined("settled", row, mined.confirmations)
      this.tellLanded("settled", [...before, ...others], ops)
      this.letGo(row)
    }
    return this.concerned(row)
  }

  finalise(signer: string, nonce: bigint, confirmations: number): Failing<ReadonlyArray<string>> {
    const row = this.nonce(signer, nonce)
    if (row?.state !== "mined" && row?.state !== "settled") return "fails"
    if (row.state === "mined") {
      this.letGo(row)
      this.tellMined("settled", row, confirmations)
      this.tellLanded("settled", this.elsewhere(row))
    }
    row.state = "settled"
    return this.concerned(row)
  }

  unsettle(signer: string, nonce: bigint): Failing<ReadonlyArray<string>> {
    const row = this.nonce(signer, nonce)
    if (row?.state !== "mined" && row?.state !== "signed") return "fails"
    if (row.state === "mined") this.withdraw(row)
    return this.concerned(row)
  }

  recordExternalUse(
    signer: string,
    nonce: bigint,
    outcomes: ReadonlyArray<OpSettlement>
  ): Failing<ReadonlyArray<string>> {
    const row = this.nonce(signer, nonce)
    if (row?.state !== "signed" && row?.state !== "external") return "fails"
    if (row.state === "signed") {
      const settled = this.settleOps(row.ops, outcomes)
      if (!row.told) this.tellLanded("submitted", settled)
      this.tellLanded("included", settled, outcomes)
      this.tellLanded("settled", settled, outcomes)
      this.letGo(row)
    }
    row.state = "external"
    return this.concerned(row)
  }

  /** Events of the request. */
  events(id: string) {
    return (this.requests.find((it) => it.id === id)?.events ?? []).map((event, at) => ({
      sequence: at + 1,
      ...event
    }))
  }

  /** Every request and every open transaction, in the form of the records. */
  view(ids: ReadonlyArray<string>) {
    const requests = ids.map((id) => {
      const request = this.requests.find((it) => it.id === id)
      if (request === undefined || request.forgotten) return null
      const latest = new Map(
        this.ops.filter((op) => op.request === id).map((op) => [op.intent.index, op] as const)
      )
      const own = this.nonces
        .filter((tx) => tx.direct === id || tx.ops.some((op) => op.request === id))
        .filter((tx) => this.isOpen(tx) || tx.state === "settled")
        .sort((a, b) => a.signedAs - b.signedAs)
      return {
        key: request.idempotency?.key ?? null,
        outcome: request.outcome,
        cancelled: request.cancelled,
        failed: [...request.failed].sort((a, b) => a.index - b.index),
        ops: [...latest.entries()]
          .sort(([a], [b]) => a - b)
          .map(([index, { hash, state, success, tx }]) => ({ index, hash, state, success, tx })),
        signed: this.ops.filter((op) => op.request === id && this.signed(op)).map((op) => op.hash),
        txHashes: own.map((tx) => tx.mined?.txHash ?? tx.versions.at(-1))
      }
    })
    const open = this.nonces
      .filter(this.isOpen)
      .sort((a, b) => (a.signer < b.signer || (a.signer === b.signer && a.nonce < b.nonce) ? -1 : 1))
      .map(({ direct, mined, nonce, ops, signer, state, versions }) => {
        const hashes = ops.flatMap((op) => op.hash ?? [])
        return { signer, nonce, state, versions, direct, hashes, mined: mined?.txHash ?? null }
      })
    const unfinished = this.openRequests()
    const ready = this.kept()
      .filter((op) => op.state === "accepted")
      .map((op) => ({ request: op.request, index: op.intent.index, hash: op.hash, exposed: op.exposed }))
    return { requests, open, unfinished, ready, ended: this.ended(ids).toSorted() }
  }

  /** Ops that are not abandoned: the candidates of calls that shall succeed. */
  elements() {
    return this.kept().map(({ hash, intent, request, state }) => ({
      request,
      index: intent.index,
      intent,
      entryPoint: intent.space.entryPoint,
      hash,
      state
    }))
  }

  /** Nonces of the lane that something was signed for, with the hashes of that. */
  used(signer: string): ReadonlyArray<{
    readonly nonce: bigint
    readonly state: string
    readonly versions: ReadonlyArray<Bytes32>
    readonly hashes: ReadonlyArray<Bytes32>
  }> {
    return this.lane(signer).map(({ nonce, ops, state, versions }) => ({
      nonce,
      state,
      versions,
      hashes: ops.flatMap((op) => op.hash ?? [])
    }))
  }

  /** State of the op with the hash. */
  find(hash: Bytes32): { readonly requestId: string; readonly state: OpRecord["state"] } | null {
    const ops = this.ops.filter((op) => op.hash === hash)
    const op = ops.find((it) => it.state !== "abandoned") ?? ops.at(-1)
    return op === undefined ? null : { requestId: op.request, state: op.state }
  }
}
