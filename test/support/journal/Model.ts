import type {
  Acceptance,
  AcceptanceResult,
  AllocationRequest,
  AllocationResult,
  LeaseRequest,
  OpIntent,
  OpRecord,
  OpSettlement,
  SignedTransaction,
  TransactionSettlement
} from "../../../src/application/ports/Journal.js"
import type { Bytes32 } from "../../../src/domain/evm/Hex.js"

/** What the journal's docstrings say, over plain lists: slow, and obviously right. `"fails"` is a JournalError. */
type Failing<A> = A | "fails"

interface Op {
  readonly request: string
  readonly intent: OpIntent
  hash: Bytes32 | null
  state: OpRecord["state"]
}

interface Nonce {
  readonly signer: string
  readonly nonce: bigint
  state: "free" | "allocated" | "signed" | "settled"
  cost: bigint
  ops: ReadonlyArray<Op>
  versions: ReadonlyArray<Bytes32>
  mined: Bytes32 | null
}

const same = (a: unknown, b: unknown): boolean => String(a) === String(b)
const sum = (values: ReadonlyArray<bigint>): bigint => values.reduce((total, value) => total + value, 0n)

/** One account on one chain. */
export class Model {
  private ops: Array<Op> = []
  private nonces: Array<Nonce> = []
  private requests = new Set<string>()
  private leases: Array<{ holder: string; place: string; key: bigint; until: number }> = []
  private authorised: Array<{ salt: Bytes32; config: Bytes32; deadline: number }> = []

  private place = (space: LeaseRequest | OpIntent["space"]) => `${space.entryPoint} ${space.wallet}`
  private live = () => this.ops.filter((op) => op.state === "accepted" || op.state === "sent")
  private kept = () => this.ops.filter((op) => op.state !== "abandoned")
  private of = (request: string, index: number) =>
    this.kept().find((op) => op.request === request && op.intent.index === index)
  private open = (op: Op) => this.nonces.some((it) => it.state === "signed" && it.ops.includes(op))

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

  accept({ deployments, funds, ops, requestId }: Acceptance): Failing<AcceptanceResult> {
    if (ops.some((op) => this.of(requestId, op.index) !== undefined)) return "fails"
    if (new Set(ops.map((op) => op.index)).size < ops.length) return "fails"
    const nonce = (op: OpIntent) => `${this.place(op.space)} ${op.nonceKey} ${op.sequence}`
    const taken = this.kept().map((op) => nonce(op.intent))
    const hashes: Array<Bytes32 | null> = this.kept().map((op) => op.hash)
    const unowned = ops.filter((op) => {
      if (taken.includes(nonce(op))) return true
      taken.push(nonce(op))
      return false
    })
    for (const { userOpHash } of ops.filter((op) => !unowned.includes(op))) {
      if (userOpHash !== null && hashes.includes(userOpHash)) return "fails"
      hashes.push(userOpHash)
    }
    if (unowned[0] !== undefined) return { _tag: "nonceTaken", index: unowned[0].index }
    for (const [at, { index, space }] of ops.entries()) {
      const held = this.live().filter((op) => op.intent.space.wallet === space.wallet)
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
    this.requests.add(requestId)
    for (const intent of ops) {
      this.ops.push({ request: requestId, intent, hash: intent.userOpHash, state: "accepted" })
      this.leases = this.leases.filter(
        (it) => it.place !== this.place(intent.space) || it.key !== intent.nonceKey
      )
    }
    return { _tag: "accepted" }
  }

  abandon(requestId: string, indexes: ReadonlyArray<number>): Failing<void> {
    const ops = indexes.flatMap((index) => this.of(requestId, index) ?? [])
    if (ops.some((op) => op.state !== "accepted")) return "fails"
    for (const op of ops) op.state = "abandoned"
  }

  identify(requestId: string, index: number, hash: Bytes32): Failing<void> {
    const op = this.of(requestId, index)
    if (op === undefined) return "fails"
    if (op.hash === hash) return
    if (op.hash !== null || op.state !== "accepted" || this.kept().some((it) => it.hash === hash))
      return "fails"
    op.hash = hash
  }

  private lane = (signer: string) => this.nonces.filter((it) => it.signer === signer)

  allocate(request: AllocationRequest): Failing<AllocationResult> {
    const ops = request.ops.flatMap((index) => this.of(request.requestId, index) ?? [])
    if (!this.requests.has(request.requestId) || ops.length < request.ops.length) return "fails"
    if (new Set(ops).size < ops.length) return "fails"
    if (ops.some((op) => op.state === "settled" || this.open(op))) return "fails"
    const lane = this.lane(request.signer)
    const reserved = sum(lane.filter((it) => it.state === "signed").map((it) => it.cost))
    if (reserved + request.maxCost > request.balance) return { _tag: "insufficientFunds", reserved }
    const unsigned = lane
      .filter((it) => it.state === "free" || it.state === "allocated")
      .map((it) => it.nonce)
      .filter((nonce) => nonce >= request.chainNonce)
    const known = [request.chainNonce, ...lane.map((it) => it.nonce + 1n)]
    const [nonce] = (
      unsigned.length > 0 ? unsigned : known.sort((a, b) => (a > b ? -1 : 1)).slice(0, 1)
    ).sort((a, b) => (a < b ? -1 : 1))
    if (nonce === undefined) return "fails"
    this.nonces = [
      ...this.nonces.filter((it) => it.signer !== request.signer || it.nonce !== nonce),
      {
        signer: request.signer,
        nonce,
        state: "allocated",
        cost: request.maxCost,
        ops,
        versions: [],
        mined: null
      }
    ]
    return { _tag: "allocated", nonce }
  }

  private nonce = (signer: string, nonce: bigint) => this.lane(signer).find((it) => same(it.nonce, nonce))

  unallocate(signer: string, nonce: bigint): Failing<void> {
    const row = this.nonce(signer, nonce)
    if (row?.state !== "allocated" && row?.state !== "free") return "fails"
    row.state = "free"
    row.ops = []
  }

  recordSigned(signed: SignedTransaction): Failing<void> {
    const row = this.nonce(signed.signer, signed.nonce)
    if (row?.state !== "allocated" && row?.state !== "signed") return "fails"
    const elsewhere = this.nonces.filter((it) => it !== row && it.state === "signed").flatMap((it) => it.ops)
    if (row.ops.some((op) => op.state === "abandoned" || elsewhere.includes(op))) return "fails"
    row.state = "signed"
    row.versions = [...row.versions, signed.txHash]
    for (const op of row.ops) if (op.state === "accepted") op.state = "sent"
  }

  settle(mined: TransactionSettlement, ops: ReadonlyArray<OpSettlement>): Failing<void> {
    const row = this.nonce(mined.signer, mined.nonce)
    const closes = row?.state === "signed" ? row.versions.includes(mined.txHash) : row?.mined === mined.txHash
    if (row === undefined || !closes) return "fails"
    row.state = "settled"
    row.mined = mined.txHash
    for (const { userOpHash } of ops)
      for (const op of this.live())
        if (op.hash === userOpHash && op.intent.space.authority === mined.signer) op.state = "settled"
  }

  /** Ops that are not abandoned: what calls that shall succeed may name. */
  known(): ReadonlyArray<{
    readonly request: string
    readonly index: number
    readonly hash: Bytes32 | null
  }> {
    return this.kept().map((op) => ({ request: op.request, index: op.intent.index, hash: op.hash }))
  }

  /** Nonces of the lane that were handed out, with the hashes of what was signed. */
  handedOut(signer: string): ReadonlyArray<{
    readonly nonce: bigint
    readonly versions: ReadonlyArray<Bytes32>
    readonly hashes: ReadonlyArray<Bytes32>
  }> {
    return this.lane(signer).map(({ nonce, ops, versions }) => ({
      nonce,
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
