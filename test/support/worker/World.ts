import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Semaphore from "effect/Semaphore"
import { elementFailure } from "../../../src/application/failures/Elements.js"
import * as Reasons from "../../../src/application/failures/Reasons.js"
import * as InFlight from "../../../src/application/lanes/InFlight.js"
import type { FailureCause, Remote } from "../../../src/application/lanes/worker/LaneState.js"
import type * as Bundle from "../../../src/application/lanes/worker/rules/Bundle.js"
import type {
  DirectContext,
  Obstacle,
  Preparer,
  SubmissionContext
} from "../../../src/application/lanes/worker/rules/Context.js"
import * as Worker from "../../../src/application/lanes/worker/Worker.js"
import * as Payer from "../../../src/application/payers/Payer.js"
import { type Call, type ChainClient, ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import type { Op, OpId, PreparedOp } from "../../../src/application/ports/journal/Records.js"
import type { RequestRecord } from "../../../src/application/ports/journal/Requests.js"
import type { TransactionRecord } from "../../../src/application/ports/journal/Transactions.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import type { Signer, SignerError } from "../../../src/application/ports/Signers.js"
import * as BundledOps from "../../../src/domain/erc4337/BundledOps.js"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as Nonce from "../../../src/domain/erc4337/Nonce.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Keccak from "../../../src/domain/primitives/Keccak.js"
import * as Words from "../../../src/domain/primitives/Words.js"
import * as Make from "../journal/Make.js"
import * as Rows from "./Rows.js"

export const version = "v0.7" as const
export const entryPoint = EntryPoint.canonical[version]
const signature = Hex.unsafe(`0x${"11".repeat(64)}1b`)
const gwei = 10n ** 9n

const failedOp = (index: number, reason: string): Hex.Hex =>
  Words.call(Keccak.selector("FailedOp(uint256,string)"), [
    Words.uint(BigInt(index)),
    Words.bytes(Hex.unsafe(`0x${Buffer.from(reason).toString("hex")}`))
  ])

const getNonce = Keccak.selector("getNonce(address,uint192)")

const nobody = Effect.die(new Error("the external bundler gets no ops"))

/** A chain that knows nonces of wallets, a journal of rows, and a worker between them. */
export const make = (
  options: {
    readonly profile?: NetworkProfile.Fields
    readonly aggregator?: Address.Address
    readonly remote?: (rows: Rows.Rows) => Remote
  } = {}
) =>
  Effect.gen(function* () {
    const rows = Rows.make()
    const scope = yield* Effect.scope
    const inFlight = InFlight.make()
    const profile = NetworkProfile.make({ chainId: Make.chainId, ...options.profile })
    const sequences = new Map<string, bigint>()
    const blames = new Map<Address.Address, string>()
    const poison = new Set<Address.Address>()
    const silent = new Set<OpId>()
    const node: {
      error: ChainRpcError | null
      balance: bigint
      asked: number
      baseFee: bigint
      offered: bigint
    } = {
      error: null,
      balance: Make.plenty,
      asked: 0,
      baseFee: gwei,
      /** Prices of prepared ops, in wei per gas unit. */
      offered: 3n * gwei
    }
    /** Ops being looked up now, and their peak number. */
    const lookUps = { open: 0, most: 0 }
    const expiry = { isOn: false, isTrusted: true }
    /** Whether the keys and nodes in requests' settings no longer exist. */
    const settings = { isGone: false, asked: 0 }
    /** Remote lanes' wallets: their acts on the chain are compared with work from before the claim. */
    const past: { look: Effect.Effect<void, Obstacle>; readonly done: Set<OpId> } = {
      look: Effect.void,
      done: new Set()
    }
    const pool: Array<TransactionRecord> = []
    const owners = new Set(["me"])
    /** Nonces of the EOA used by foreign transactions, in the pool or in a block; `ours`: nonces of our lost past. */
    const foreign = new Set<bigint>()
    const ours = new Set<bigint>()
    /** Ops that can no longer land: their time is over at settled depth. */
    const over = new Set<OpId>()
    /** Ops that pass in a simulation, and that no transaction shows. */
    const lacked = new Set<OpId>()
    let height = 1n
    let latest = 0n

    const placeOf = (wallet: Address.Address, nonce: bigint) => `${wallet} ${Nonce.keyOf(nonce)}`
    /** Revert reason of the EOA's direct transactions; null: they pass. */
    const reverting: { reason: string | null } = { reason: null }
    /** Present result of `handleOps`: the blamed op, or null. */
    const judge = ({ data }: Call): Hex.Hex | null => {
      const next = new Map(sequences)
      const ops = BundledOps.read(version, data)
      for (const [index, { nonce, sender }] of ops.entries()) {
        const place = placeOf(sender, nonce)
        if ((next.get(place) ?? 0n) !== Nonce.sequenceOf(nonce))
          return failedOp(index, "AA25 invalid account nonce")
        const reason = blames.get(sender)
        if (reason !== undefined) return failedOp(index, reason)
        next.set(place, Nonce.sequenceOf(nonce) + 1n)
      }
      return ops.some(({ sender }) => poison.has(sender)) ? Hex.empty : null
    }
    const answer = <A>(value: () => A): Effect.Effect<A, ChainRpcError> =>
      Effect.suspend((): Effect.Effect<A, ChainRpcError> => {
        node.asked += 1
        return node.error === null ? Effect.sync(value) : Effect.fail(node.error)
      })
    const chain = {
      origin: "http://node",
      block: () =>
        answer(() => ({
          number: height,
          hash: Make.word(height),
          timestamp: Number(height),
          gasLimit: 30_000_000n,
          baseFeePerGas: node.baseFee
        })),
      fees: answer(() => ({ nextBaseFee: node.baseFee, tip: gwei })),
      balance: () => answer(() => node.balance),
      transactionCount: (_: Address.Address, tag: unknown) =>
        answer(() => (tag === "latest" ? latest : latest + BigInt(pool.length + foreign.size))),
      simulate: () =>
        Effect.fail(
          new ChainRpcError({ reason: "unsupported", origin: "http://node", message: "no such method" })
        ),
      call: (call: Call) =>
        answer(() => {
          if (call.data.startsWith(getNonce)) {
            const wallet = Address.fromWord(Hex.unsafe(`0x${call.data.slice(10, 74)}`))
            const asked = Nonce.make(BigInt(`0x${call.data.slice(74)}`), 0n)
            const nonce = asked + (sequences.get(placeOf(wallet, asked)) ?? 0n)
            return { success: true, data: Words.call(Hex.empty, [Words.uint(nonce)]) }
          }
          if (call.to !== entryPoint) return { success: reverting.reason === null, data: Hex.empty }
          const data = judge(call)
          return { success: data === null, data: data ?? Hex.empty }
        })
    } as unknown as ChainClient

    /** The refusal or silence of the lane's key; null: it signs. */
    const key: Signer = {
      address: Make.lane.signer,
      publicKey: "",
      type: "PRIVATE_KEY",
      sign: () => Effect.suspend(() => signer.signTransaction)
    }
    const signer: {
      sign: (opId: OpId) => Effect.Effect<Hex.Hex, SignerError>
      signTransaction: Effect.Effect<Hex.Hex, SignerError>
    } = {
      sign: (opId) => (silent.has(opId) ? Effect.never : Effect.succeed(signature)),
      signTransaction: Effect.succeed(signature)
    }
    const access = Make.access({ rpc: Redacted.make("http://node") })
    const direct: DirectContext = {
      kind: "direct",
      connection: { chain, profile, trust: "caller", rpc: Redacted.make("http://node") },
      access,
      buffers: {
        transaction: Result.getOrThrow(Percent.from(50)),
        price: Result.getOrThrow(Percent.from(20))
      },
      bindHolds: () => Effect.void,
      release: () => Effect.void
    }
    const context: SubmissionContext = {
      ...direct,
      kind: "ops",
      version,
      entryPoint,
      payer: Payer.wallet,
      aggregator: options.aggregator ?? null,
      // Each op has a separate key, identified by its wallet's index.
      keyOf: (address) => ({
        ...key,
        address,
        sign: () => Effect.suspend(() => signer.sign(Number(BigInt(address))))
      }),
      deployer: Effect.die(new Error("nothing is deployed")),
      bindHolds: () => Effect.void
    }

    const prepared = (
      opId: OpId,
      wallet: Address.Address,
      sequence: bigint,
      rest: Partial<PreparedOp> = {}
    ): PreparedOp => {
      const unsigned: UserOperation.UserOperation = {
        sender: wallet,
        nonce: Nonce.make(rest.nonceKey ?? 0n, sequence),
        initCode: Hex.empty,
        callData: Hex.unsafe("0x1234"),
        callGasLimit: 50_000n,
        verificationGasLimit: 50_000n,
        preVerificationGas: 40_000n,
        maxFeePerGas: node.offered,
        maxPriorityFeePerGas: gwei,
        paymasterAndData: Hex.empty,
        signature: Hex.empty
      }
      return {
        requestId: `r${opId}`,
        index: 0,
        kind: "op",
        unsigned,
        space: { authority: Make.lane.signer, chainId: Make.chainId, entryPoint, wallet },
        nonceKey: 0n,
        sequence,
        userOpHash: UserOperation.hash(version, entryPoint, Make.chainId, unsigned),
        proof: { by: [{ signer: Make.address(opId), place: 0 }] },
        window: null,
        dependsOn: [],
        reserve: 0n,
        l1Fee: 0n,
        returned: null,
        goodUntil: null,
        ...rest
      } as PreparedOp
    }
    const accept = (
      opId: OpId,
      over: {
        readonly wallet?: Address.Address
        readonly sequence?: bigint
        readonly prepared?: Partial<PreparedOp>
      } = {}
    ): Op => {
      const wallet = over.wallet ?? Make.address(0x10000 + opId)
      const own = prepared(opId, wallet, over.sequence ?? 0n, over.prepared)
      const op: Op = {
        opId,
        requestId: own.requestId,
        index: own.index,
        accountId: Make.alice,
        endpoint: "execute",
        key: access.key,
        contextDigest: "digest",
        acceptedAt: 0,
        notBefore: null,
        state: "accepted",
        exposed: false,
        space: own.space,
        nonceKey: own.nonceKey,
        sequence: own.sequence,
        userOpHash: own.userOpHash,
        prepared: own,
        txHash: null,
        success: null,
        revertData: null
      }
      rows.put(op)
      return op
    }

    /** A direct transaction of the EOA. */
    const acceptDirect = (opId: OpId, over: Partial<Op> = {}): Op => {
      const { signer: wallet } = Make.lane
      const own: PreparedOp = {
        ...prepared(opId, wallet, 0n, { nonceKey: BigInt(opId), userOpHash: null, proof: null }),
        kind: "direct",
        unsigned: { to: Make.address(7), data: Hex.unsafe("0x5678"), value: 5n, gasLimit: 50_000n },
        space: { authority: wallet, chainId: Make.chainId, entryPoint: "direct", wallet }
      }
      const { nonceKey, space } = own
      const op: Op = {
        ...accept(opId),
        contextDigest: "direct",
        space,
        nonceKey,
        userOpHash: null,
        prepared: own,
        ...over
      }
      rows.put(op)
      return op
    }

    /** By request, its elements without ops, and their due time, in Unix ms; null: immediately. */
    const unopened = new Map<string, { left: ReadonlyArray<number>; dueAt: number | null }>()
    const isDue = ({
      dueAt,
      left
    }: {
      readonly left: ReadonlyArray<number>
      readonly dueAt: number | null
    }) => Effect.map(Clock.currentTimeMillis, (now) => left.length > 0 && (dueAt === null || dueAt <= now))
    let asked = 0

    const preparing: Preparer = {
      contextOf: ({ contextDigest }) =>
        Effect.suspend(() => {
          settings.asked += 1
          return settings.isGone
            ? Effect.fail({ _tag: "Obstacle" as const, why: "no such key" })
            : Effect.succeed(contextDigest === "direct" ? direct : context)
        }),
      repricingOf: () => Effect.die(new Error("no transaction is repriced")),
      unopened: () => Effect.die(new Error("nothing is read")),
      revertOf: (_, data) =>
        Effect.succeed(data.includes(Buffer.from("AA23").toString("hex")) ? "AA23 reverted" : data),
      anew: (_, ops) =>
        Effect.sync(
          () =>
            new Map(
              ops.map((op) => {
                const { index, nonceKey, opId, requestId, space } = op
                const key = { requestId, index, nonceKey: nonceKey + BigInt(opId) }
                return [opId, { _tag: "prepared" as const, prepared: prepared(opId, space.wallet, 0n, key) }]
              })
            )
        ),
      open: (_, requests) =>
        Effect.suspend(() =>
          node.error === null
            ? Effect.succeed(
                new Map(
                  requests.map(({ requestId }) => [
                    requestId,
                    Result.succeed({
                      requestId,
                      ops: (unopened.get(requestId)?.left ?? [])
                        .slice(0, 256)
                        .map((index) =>
                          prepared(index, Make.address(0x20000 + index), 0n, { requestId, index })
                        ),
                      failed: [],
                      funds: [],
                      deployments: [],
                      schedule: null
                    })
                  ])
                )
              )
            : Effect.fail({ _tag: "Obstacle" as const, why: node.error.message })
        ),
      again: ({ kind }, ops) =>
        Effect.sync(
          () =>
            new Map(
              ops.map((op) => {
                if (kind === "direct" && op.prepared !== null)
                  return [
                    op.opId,
                    reverting.reason === null
                      ? { _tag: "prepared" as const, prepared: op.prepared }
                      : {
                          _tag: "failed" as const,
                          failure: elementFailure(
                            "execution_failed",
                            Reasons.text("reverted", { reason: reverting.reason })
                          )
                        }
                  ]
                return [
                  op.opId,
                  {
                    _tag: "prepared" as const,
                    prepared: prepared(op.opId, op.space.wallet, op.sequence, {
                      requestId: op.requestId,
                      index: op.index,
                      nonceKey: op.nonceKey,
                      dependsOn: op.prepared?.dependsOn ?? []
                    })
                  }
                ]
              })
            )
        )
    }
    const lock = Semaphore.makeUnsafe(1)
    const told: Array<string> = []
    const worker = Worker.make({
      facts: {
        balance: ({ balance }, address) => balance(address),
        block: ({ block }) => block("latest"),
        fees: ({ fees }) => fees
      },
      opJournal: rows.opJournal,
      transactionJournal: rows.transactionJournal,
      expiry: {
        mayExpire: Effect.sync(() => expiry.isTrusted),
        profileOf: () => Effect.succeed(profile),
        overdue: (_, before, limit, after) =>
          Effect.sync(() => {
            if (!expiry.isOn) return []
            const old = rows.all("accepted").filter(({ acceptedAt }) => acceptedAt < before)
            const all = [...Map.groupBy(old, ({ requestId }) => requestId)].map(([requestId, own]) => ({
              requestId,
              endpoint: own[0]?.endpoint ?? "",
              acceptedAt: own[0]?.acceptedAt ?? 0,
              isExposed: own.some(({ exposed }) => exposed),
              isNoted: true,
              hasMore: own.some(({ exposed }) => !exposed)
            }))
            const from = all.findIndex(({ requestId }) => requestId === after) + 1
            return all.filter(({ hasMore }) => hasMore).slice(from, from + limit)
          }),
        cancel: ({ isExposed, requestId }) =>
          Effect.sync(() => {
            for (const op of rows.all("accepted"))
              if (op.requestId === requestId && !op.exposed) rows.put({ ...op, state: "abandoned" })
            return isExposed ? "kept" : "final"
          })
      },
      known: {
        provenAt: () => Effect.succeed(null),
        from: () => Effect.succeed(0n),
        holdDone: () => past.look,
        read: (_, __, nonces) =>
          Effect.sync(() => {
            for (const opId of past.done) rows.held.add(opId)
            return nonces.map((nonce) => ({ nonce, isOurs: ours.has(nonce) }))
          })
      },
      watch: () => Effect.void,
      requestJournal: {
        requests: (requestIds) =>
          Effect.sync(() =>
            requestIds.map((requestId) => {
              const ops = [...rows.ops.values()].filter((op) => op.requestId === requestId)
              return { requestId, ops, failed: rows.failed.get(requestId) ?? [] } as unknown as RequestRecord
            })
          ),
        note: () => Effect.void,
        unopened: (_, limit, endpoint) =>
          Effect.gen(function* () {
            if (endpoint !== undefined) return []
            asked += 1
            const due = yield* Effect.filter([...unopened], ([, request]) => isDue(request))
            return due.slice(0, limit).map(([requestId, { left }]) => ({
              requestId,
              accountId: Make.alice,
              endpoint: "execute",
              contextDigest: "digest",
              unopened: left.length,
              acceptedAt: 0
            }))
          }),
        nextDue: () =>
          Effect.sync(() => {
            const times = [...unopened.values()].flatMap(({ dueAt, left }) =>
              dueAt === null || left.length === 0 ? [] : [dueAt]
            )
            return times.length === 0 ? null : Math.min(...times)
          }),
        openElements: (_, { ops, requestId }) =>
          Effect.sync(() => {
            const request = unopened.get(requestId)
            if (request === undefined) return { _tag: "over" }
            const gone = new Set(ops.map(({ index }) => index))
            request.left = request.left.filter((index) => !gone.has(index))
            for (const op of ops) accept(1_000 + op.index, { wallet: op.space.wallet, prepared: op })
            return { _tag: "accepted" }
          })
      },
      claims: {
        take: () => Effect.sync(() => owners.has("me")),
        holding: () => ({ ...Make.lane, ...rows.claim })
      },
      inFlight,
      monitor: {
        watch: ({ record }) =>
          Effect.sync(() => {
            pool.push(record)
            inFlight.add(record)
          }),
        useNode: () => Effect.void,
        leave: () => Effect.void
      },
      signerOf: () => Effect.succeed(key),
      preparing,
      remote: options.remote?.(rows) ?? {
        ops: { forget: () => nobody, give: () => nobody },
        journal: { handOver: () => nobody, takeBack: () => nobody },
        bundlers: { connect: () => nobody },
        refused: () => nobody
      },
      lookUp: (op: Bundle.Held) => {
        lookUps.open += 1
        lookUps.most = Math.max(lookUps.most, lookUps.open)
        return Effect.yieldNow.pipe(
          Effect.andThen(
            answer((): FailureCause => {
              const sequence = sequences.get(placeOf(op.wallet, Nonce.make(op.key, 0n))) ?? 0n
              if (sequence === op.sequence) return { _tag: "nothing" }
              return over.has(op.opId) && sequence < op.sequence
                ? { _tag: "dead", why: elementFailure("window_passed") }
                : { _tag: "sequence", sequence }
            })
          ),
          Effect.mapError(({ message }) => ({ _tag: "Obstacle" as const, why: message })),
          Effect.ensuring(
            Effect.sync(() => {
              lookUps.open -= 1
            })
          )
        )
      },
      foundDone: (op) => Effect.sync(() => rows.put({ ...op, state: "abandoned" })),
      exclusive: (_, effect) => lock.withPermits(1)(effect),
      affected: (requestIds) => Effect.sync(() => void told.push(...requestIds)),
      scope
    })

    return {
      rows,
      worker,
      accept,
      acceptDirect,
      reverting,
      prepared,
      sequences,
      blames,
      poison,
      silent,
      signer,
      node,
      lookUps,
      expiry,
      settings,
      past,
      owners,
      pool,
      inFlight,
      foreign,
      lacked,
      over,
      ours,
      told,
      unopened,
      /** Number of the journal's reads for elements to open. */
      looks: () => asked,
      wake: worker.wake(Make.lane),
      /** A block takes every waiting transaction; each of their ops lands whose nonce is due. */
      mine: Effect.suspend(() => {
        height += 1n
        const mined: Array<TransactionRecord> = []
        latest += BigInt(foreign.size)
        foreign.clear()
        for (const record of pool.splice(0)) {
          const landed = new Set<OpId>()
          for (const { opId } of rows.transactions.get(record.nonce)?.ops ?? []) {
            const op = rows.ops.get(opId)
            if (op === undefined) continue
            if (op.space.entryPoint === "direct") {
              landed.add(opId)
              continue
            }
            const place = placeOf(op.space.wallet, Nonce.make(op.nonceKey, 0n))
            if ((sequences.get(place) ?? 0n) !== op.sequence || lacked.has(opId)) continue
            sequences.set(place, op.sequence + 1n)
            landed.add(opId)
          }
          latest += 1n
          rows.settle(record.nonce, landed)
          inFlight.remove(record)
          mined.push(record)
        }
        return Effect.forEach(mined, (record) => worker.mined(record, true), { discard: true })
      }),
      /** Number of ops in each transaction, by nonce. */
      bundles: () => [...rows.transactions.values()].map(({ ops }) => ops.length)
    }
  })

export type World = Effect.Success<ReturnType<typeof make>>
