import type { EventData, EventKind } from "../../../src/application/ports/journal/Events.js"
import type { FoundInclusion } from "../../../src/application/ports/journal/RemoteSubmissions.js"
import type {
  Acceptance,
  AcceptanceResult,
  Cancellation,
  CancellationCode,
  FailedElement,
  LeaseRequest,
  OpIntent,
  OpRecord,
  OpSettlement
} from "../../../src/application/ports/journal/Requests.js"
import type {
  AllocationRequest,
  AllocationResult,
  Depth,
  Lane,
  SignedTransaction,
  TransactionRecord,
  TransactionSettlement
} from "../../../src/application/ports/journal/Transactions.js"
import type { Bytes32 } from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"

/** What the journal's docstrings say, over plain lists: slow, and obviously right. `"fails"` is a JournalError. */
type Failing<A> = A | "fails"

const depthOf = ({ blockNumber, confirmations }: Depth) => ({
  blockNumber: blockNumber.toString(),
  confirmations
})

interface Op {
  readonly request: string
  readonly intent: OpIntent
  hash: Bytes32 | null
  state: OpRecord["state"]
  tx: Bytes32 | null
  success: boolean | null
  /** Who has it where no transaction of ours does: a bundler, or nobody, when it was only found on the chain. */
  handed: "bundler" | "found" | null
  /** It was found on the chain, and is there no more. */
  known: boolean
  /** Of what a bundler has: it took it, or it was on the chain. */
  told: boolean
}

interface Nonce {
  readonly signer: string
  readonly nonce: bigint
  state: "free" | "allocated" | TransactionRecord["state"]
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
  key: string | null
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

  private place = (space: LeaseRequest | OpIntent["space"]) => `${space.entryPoint} ${space.wallet}`
  private live = () => this.ops.filter((op) => op.state === "accepted" || op.state === "sent")
  private kept = () => this.ops.filter((op) => op.state !== "abandoned")
  private of = (request: string, index: number) =>
    this.kept().find((op) => op.request === request && op.intent.index === index)
  private isOpen = (it: Nonce) => it.state === "signed" || it.state === "mined"
  private carried = (op: Op) => this.nonces.some((it) => this.isOpen(it) && it.ops.includes(op))
  private final = (id: string) => this.requests.some((it) => it.id === id && it.outcome !== null)
  private known = (id: string) => this.requests.some((it) => it.id === id)

  private nonceOf = (op: OpIntent) => `${this.place(op.space)} ${op.nonceKey} ${op.sequence}`
  private signed = (op: Op) =>
    op.known ||
    this.nonces.some((it) => it.state !== "free" && it.state !== "allocated" && it.ops.includes(op))
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

  /** Tells each request which of its elements it is about; of a request's own transaction there are none. */
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

  /** Tells of ops by the transactions in which they have landed. */
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

  /** Ops of it that have landed in another transaction. */
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

  accept(acceptance: Acceptance, now: number): Failing<AcceptanceResult> {
    const { deployments, failed, funds, idempotency, ops, requestId } = acceptance
    if (this.final(requestId)) return "fails"
    if (failed.some((it) => ops.some((op) => op.index === it.index))) return "fails"
    const alive = ops.flatMap((op) => this.of(requestId, op.index) ?? [])
    const replaces = (old: Op) =>
      old.state === "accepted" &&
      this.holds(old) &&
      ops.some((op) => op.index === old.intent.index && this.nonceOf(op) === this.nonceOf(old.intent))
    if (!alive.every(replaces)) return "fails"
    const kept = this.kept().filter((op) => !alive.includes(op))
    if (new Set(ops.map((op) => op.index)).size < ops.length) return "fails"
    const owner = this.requests.find((it) => it.key !== null && it.key === idempotency?.key)
    if (!this.known(requestId) && owner !== undefined) return { _tag: "known", requestId: owner.id }
    const code = this.requests.find((it) => it.id === requestId)?.cancelled ?? null
    const begun = ops.find((op) => alive.every((old) => old.intent.index !== op.index))
    if (code !== null && begun !== undefined) return { _tag: "cancelled", index: begun.index, code }
    const nonce = this.nonceOf
    const taken = kept.map((op) => nonce(op.intent))
    const hashes: Array<Bytes32 | null> = kept.map((op) => op.hash)
    const unowned = ops.filter((op) => {
      if (taken.includes(nonce(op))) return true
      taken.push(nonce(op))
      return false
    })
    for (const { userOpHash } of ops.filter((op) => !unowned.includes(op))) {
      if (userOpHash !== null && hashes.includes(userOpHash)) return "fails"
      hashes.push(userOpHash)
    }
    const [refused] = unowned
    if (refused !== undefined) {
      const owner = kept.find((op) => nonce(op.intent) === nonce(refused))
      return { _tag: "nonceTaken", index: refused.index, isSettled: owner?.state === "settled" }
    }
    for (const [at, { index, space }] of ops.entries()) {
      const held = kept.filter((op) => this.live().includes(op) && op.intent.space.wallet === space.wallet)
      const others = sum(held.filter((op) => op.request !== requestId).map((op) => op.intent.reserve))
      const own = sum(held.filter((op) => op.request === requestId).map((op) => op.intent.reserve))
      const fresh = sum(
        ops
          .slice(0, at + 1)
          .filter((op) => op.space.wallet === space.wallet)
          .map((op) => op.reserve)
      )
      const available = funds.find((it) => this.place(it.space) === this.place(space))?.available ?? -1n
      if (others > 0n && others + own + fresh > available)
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
    const isNew = !this.known(requestId)
    if (isNew)
      this.requests.push({
        id: requestId,
        acceptedAt: now,
        key: idempotency?.key ?? null,
        outcome: null,
        cancelled: null,
        forgotten: false,
        declined: false,
        failed: [],
        events: []
      })
    if (isNew) this.tell(requestId, "accepted")
    const request = this.requests.find((it) => it.id === requestId)
    if (request !== undefined)
      request.failed = request.failed.filter((it) => ops.every((op) => op.index !== it.index))
    this.refuse(requestId, failed)
    for (const op of alive) op.state = "abandoned"
    for (const intent of ops) {
      this.ops.push({
        request: requestId,
        intent,
        hash: intent.userOpHash,
        state: "accepted",
        tx: null,
        success: null,
        handed: null,
        known: false,
        told: false
      })
      this.leases = this.leases.filter(
        (it) => it.place !== this.place(intent.space) || it.key !== intent.nonceKey
      )
    }
    return { _tag: "accepted" }
  }

  decline(requestId: string, now: number): Lane | null {
    const request = this.requests.find((it) => it.id === requestId)
    if (request !== undefined) return request.forgotten ? null : Make.lane
    const rest = { key: null, outcome: "none", forgotten: true, declined: true, cancelled: null }
    this.requests.push({ id: requestId, acceptedAt: now, failed: [], events: [], ...rest })
    return null
  }

  refuse(requestId: string, failed: ReadonlyArray<FailedElement>): Failing<void> {
    const request = this.requests.find((it) => it.id === requestId)
    if (request === undefined) return "fails"
    for (const it of failed) request.failed = [...request.failed.filter((old) => old.index !== it.index), it]
  }

  finish(requestId: string, outcome: string): Failing<string | null> {
    const request = this.requests.find((it) => it.id === requestId)
    if (request === undefined) return "fails"
    if (request.outcome !== null) return request.forgotten ? outcome : request.outcome
    const unmined = this.nonces.some((it) => it.direct === requestId && it.state === "signed")
    if (unmined || this.live().some((op) => op.request === requestId)) return null
    request.outcome = outcome
    this.tell(requestId, "final", { httpStatus: 200 })
    return outcome
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
      this.nonces.some((it) => it.direct === requestId && it.state !== "free" && it.state !== "allocated")
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
      it.key = null
      this.ops = this.ops.filter((op) => !ops.includes(op))
      for (const tx of own) {
        tx.ops = tx.ops.filter((op) => !ops.includes(op))
        if (tx.ops.length > 0) continue
        tx.direct = null
        if (tx.versions.length < 2) this.nonces = this.nonces.filter((other) => other !== tx)
      }
    }
  }

  abandon(requestId: string, indexes: ReadonlyArray<number>, keepSigned: boolean): Failing<void> {
    const ops = indexes.flatMap((index) => this.of(requestId, index) ?? [])
    if (ops.some((op) => op.state !== "accepted")) return "fails"
    const over = ops.filter((op) => !keepSigned || !this.holds(op))
    for (const op of over) op.state = "abandoned"
  }

  identify(requestId: string, index: number, hash: Bytes32): Failing<void> {
    const op = this.of(requestId, index)
    if (op === undefined) return "fails"
    if (op.hash === hash) return
    if (op.hash !== null || op.state !== "accepted" || this.kept().some((it) => it.hash === hash))
      return "fails"
    op.hash = hash
  }

  submitRemotely(requestId: string, indexes: ReadonlyArray<number>): Failing<void> {
    const ops = indexes.map((index) => this.of(requestId, index))
    if (ops.some((op) => !op?.hash || op.state === "settled" || this.carried(op))) return "fails"
    const fresh = ops.filter((op) => op !== undefined).filter((op) => op.state === "accepted")
    for (const op of fresh) Object.assign(op, { state: "sent", handed: "bundler", told: false })
    if (fresh.length > 0) this.tellOf("signed", {}, [requestId], fresh)
  }

  revokeRemote(requestId: string, indexes: ReadonlyArray<number>): void {
    for (const op of indexes.map((index) => this.of(requestId, index)))
      if (op?.state === "sent" && !this.carried(op)) Object.assign(op, { state: "accepted", handed: null })
  }

  /** Gives those that it has settled. */
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
      if (isFound) Object.assign(op, { handed: null, known: true })
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

  /** Hash and landing of every op that is to be watched. */
  remoteSubmissions(): ReadonlyArray<readonly [Bytes32 | null, Bytes32 | null]> {
    return this.ops
      .filter((op) => op.handed === "bundler" || (op.handed === "found" && op.state === "settled"))
      .map((op) => [op.hash, op.tx])
  }

  private lane = (signer: string) => this.nonces.filter((it) => it.signer === signer)
  private concerned = ({ direct, ops }: Nonce): ReadonlyArray<string> =>
    [...new Set([...ops.map((op) => op.request), ...(direct === null ? [] : [direct])])].sort()

  /** Whether the request may have a transaction of its own signed. */
  private mayOwn = (id: string) =>
    this.known(id) &&
    !this.final(id) &&
    !this.nonces.some((it) => it.direct === id && (this.isOpen(it) || it.state === "settled"))

  private route = ({ direct, ops }: Pick<Nonce, "direct" | "ops">) =>
    ops[0]?.intent.space.entryPoint ?? (direct === null ? null : "direct")

  /** Whether a signed transaction of the lane has another route. */
  private blocked(signer: string, it: Pick<Nonce, "direct" | "ops">, drainedTo: bigint): boolean {
    const signed = this.lane(signer).filter((other) => other.state === "signed" && other.nonce >= drainedTo)
    const routes = [it, ...signed].map(this.route).filter((route) => route !== null)
    return this.route(it) !== null && new Set(routes).size > 1
  }

  allocate(request: AllocationRequest): Failing<AllocationResult> {
    const { direct, signer } = request
    const ops = request.ops.flatMap((ref) => this.of(ref.requestId, ref.index) ?? [])
    if (new Set(ops).size < request.ops.length) return "fails"
    if (ops.some((op) => op.state !== "accepted" || op.intent.space.authority !== signer)) return "fails"
    if (direct !== null && (ops.length > 0 || !this.mayOwn(direct))) return "fails"
    if (new Set(ops.map((op) => op.intent.space.entryPoint)).size > 1) return "fails"
    const lane = this.lane(signer)
    if (this.blocked(signer, { direct, ops }, request.drainedTo)) return { _tag: "otherRoute" }
    const reserved = sum(lane.filter((it) => it.state === "signed").map((it) => it.cost))
    if (reserved + request.maxCost > request.balance) return { _tag: "insufficientFunds", reserved }
    let nonce = request.chainNonce
    while (lane.some((it) => it.nonce === nonce && it.state !== "free" && it.state !== "allocated")) nonce++
    this.nonces = [
      ...this.nonces.filter(
        (it) => it.signer !== signer || it.nonce > nonce || (it.state !== "free" && it.state !== "allocated")
      ),
      {
        signer,
        nonce,
        state: "allocated",
        cost: request.maxCost,
        ops,
        direct,
        versions: [],
        mined: null,
        signedAs: 0,
        told: false
      }
    ]
    return { _tag: "allocated", nonce }
  }

  private nonce = (signer: string, nonce: bigint) => this.lane(signer).find((it) => it.nonce === nonce)

  unallocate(signer: string, nonce: bigint): Failing<void> {
    const row = this.nonce(signer, nonce)
    if (row?.state !== "allocated" && row?.state !== "free") return "fails"
    Object.assign(row, { state: "free", ops: [], direct: null })
  }

  recordSigned(signed: SignedTransaction): Failing<void> {
    const row = this.nonce(signed.signer, signed.nonce)
    if (row?.state !== "allocated" && row?.state !== "signed") return "fails"
    if (row.state === "allocated") {
      if (row.ops.some((op) => op.hash === null || op.state === "abandoned" || op.state === "sent"))
        return "fails"
      if (row.direct !== null && !this.mayOwn(row.direct)) return "fails"
      if (this.blocked(signed.signer, row, signed.drainedTo)) return "fails"
      row.signedAs = ++this.signatures
    }
    const replaces = row.versions.at(-1)
    row.state = "signed"
    if (row.versions.includes(signed.txHash)) return
    const { maxFeePerGas, maxPriorityFeePerGas, txHash } = signed
    const prices = {
      maxFeePerGas: maxFeePerGas.toString(),
      maxPriorityFeePerGas: maxPriorityFeePerGas.toString()
    }
    this.tellOf(
      replaces === undefined ? "signed" : "replaced",
      { txHash, ...(replaces !== undefined && { replaces }), ...prices },
      this.concerned(row),
      row.ops
    )
    row.versions = [...row.versions, signed.txHash]
    row.cost += signed.addedCost
    for (const op of row.ops.filter((it) => it.state !== "settled"))
      Object.assign(op, { state: "sent", tx: signed.txHash })
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

  /** What was told of the request. */
  events(id: string) {
    return (this.requests.find((it) => it.id === id)?.events ?? []).map((event, at) => ({
      sequence: at + 1,
      ...event
    }))
  }

  /** What is known of every request and of every open transaction, in the words of the records. */
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
        key: request.key,
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
        const hashes = ops.map((op) => op.hash)
        return { signer, nonce, state, versions, direct, hashes, mined: mined?.txHash ?? null }
      })
    const unfinished = this.requests.filter((it) => it.outcome === null).map((it) => it.id)
    return { requests, open, unfinished }
  }

  /** Ops that are not abandoned: what calls that shall succeed may name. */
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

  /** Nonces of the lane that were handed out, with the hashes of what was signed. */
  handedOut(signer: string): ReadonlyArray<{
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

  /** State of the op that is found by the hash. */
  find(hash: Bytes32): { readonly requestId: string; readonly state: OpRecord["state"] } | null {
    const ops = this.ops.filter((op) => op.hash === hash)
    const op = ops.find((it) => it.state !== "abandoned") ?? ops.at(-1)
    return op === undefined ? null : { requestId: op.request, state: op.state }
  }
}
