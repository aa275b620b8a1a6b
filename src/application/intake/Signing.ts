import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Aggregation from "../../domain/erc4337/Aggregation.js"
import type { UserOperation } from "../../domain/erc4337/UserOperation.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Words from "../../domain/primitives/Words.js"
import * as Connection from "../chain/Connection.js"
import * as Keys from "../keys/Keys.js"
import type { PayerRefusal } from "../pay/Payer.js"
import type { Aggregate, SignedOp } from "../ports/chain/Bundler.js"
import type { CallResult, ChainRpcError } from "../ports/chain/ChainRpc.js"
import { OpJournal } from "../ports/journal/OpJournal.js"
import type { SignerError } from "../ports/Signers.js"
import type { OpContext } from "../prepare/OpContext.js"
import * as Delays from "../request/Delays.js"
import { type ElementFailure, elementFailure } from "../request/Elements.js"
import type { Failure } from "../request/Failure.js"
import * as Reasons from "../request/Reasons.js"

/** An op of which only signatures are missing, and who makes them. */
export interface Unsigned {
  readonly index: number
  /** Null when the hash depends on a signature, or on its payer: then `complete` gives it. */
  readonly userOpHash: Hex.Bytes32 | null
  /** The op with everything but its own signature. Runs after acceptance. */
  readonly complete: Effect.Effect<
    { readonly op: UserOperation; readonly userOpHash: Hex.Bytes32 },
    SignerError | PayerRefusal
  >
  /** The op's signature, without what its payer adds. Runs after the hash is journalled. */
  readonly sign: (userOpHash: Hex.Bytes32) => Effect.Effect<Hex.Hex, SignerError>
}

/** A bundle that is signed. What is kept for its ops is given back by `release` when nothing of them is sent. */
export interface Signed {
  readonly ops: ReadonlyArray<SignedOp>
  readonly aggregate: Aggregate | null
  readonly release: (ops: ReadonlyArray<SignedOp>) => Effect.Effect<void>
}

/** Why a bundle is not signed. */
export type Obstacle =
  /** These can not go; the others may go without them. */
  | { readonly _tag: "elements"; readonly failed: ReadonlyMap<number, ElementFailure> }
  /** Stands in the way of all of them. */
  | { readonly _tag: "all"; readonly failure: ElementFailure }

const elements = (failed: ReadonlyArray<readonly [number, ElementFailure]>): Obstacle => ({
  _tag: "elements",
  failed: new Map(failed)
})

const all = (failure: ElementFailure): Obstacle => ({ _tag: "all", failure })

const unavailable = (error: SignerError): Obstacle =>
  all(elementFailure("signer_unavailable", undefined, { reason: Keys.unavailable(error) }))

const unkept = (failure: Failure): Obstacle => all(Delays.ofFailure(failure) ?? Delays.asElement(failure))

/** The same for every op: the first failing signer or node ends it, what payers refuse is gathered. */
const forEach = <A, B>(
  ops: ReadonlyArray<A & { readonly index: number }>,
  make: (op: A & { readonly index: number }) => Effect.Effect<B, SignerError | PayerRefusal | Failure>
): Effect.Effect<ReadonlyArray<B>, Obstacle> =>
  Effect.gen(function* () {
    const made = yield* Effect.forEach(
      ops,
      (op) =>
        make(op).pipe(
          Effect.map(Result.succeed),
          Effect.catch((error) => {
            if (error._tag === "PayerRefusal")
              return Effect.succeed(Result.fail([op.index, error.failure] as const))
            return Effect.fail(error._tag === "SignerError" ? unavailable(error) : unkept(error))
          })
        ),
      { concurrency: "unbounded" }
    )
    const refused = made.flatMap((each) => (Result.isFailure(each) ? [each.failure] : []))
    if (refused.length > 0) return yield* Effect.fail(elements(refused))
    return made.flatMap((each) => (Result.isSuccess(each) ? [each.success] : []))
  })

/** Offset and length of an aggregate's parts, bytes. */
const perPart = 64

/**
 * The `bytes` that a call returned; `Failure` says what is wrong. An aggregator makes less of signatures than there was:
 * more than that is calldata that nobody has agreed to pay for.
 */
const bytesOf = (
  { data, success }: CallResult,
  most: number,
  field: string,
  revert: (data: Hex.Hex) => string
): Result.Result<Hex.Hex, Reasons.Text> => {
  if (!success) return Result.fail(Reasons.text("aggregatorReverted", { field, reason: revert(data) }))
  const inner = Words.readBytes(Words.read(data), 0)
  if (Words.encode([Words.bytes(inner)]) !== data)
    return Result.fail(Reasons.text("aggregatorShape", { field }))
  return Hex.size(inner) > most
    ? Result.fail(Reasons.text("aggregatorLength", { field, given: Hex.size(inner), most }))
    : Result.succeed(inner)
}

/** The signatures of all ops made one by the aggregator, which is asked beforehand what it will say of each. */
const aggregated = (
  { aggregator, connection, entryPoint, version }: OpContext,
  ops: ReadonlyArray<SignedOp>,
  revert: (data: Hex.Hex) => string
): Effect.Effect<Pick<Signed, "ops" | "aggregate">, Obstacle> =>
  Effect.gen(function* () {
    if (aggregator === null) return { ops, aggregate: null }
    const { chain } = connection
    const ask = (data: Hex.Hex) => chain.call({ from: entryPoint, to: aggregator, data })
    const node = Effect.mapError(
      ({ message }: ChainRpcError): Obstacle => all(Connection.elementRefusal(connection, message))
    )
    const [each, together] = yield* node(
      Effect.all(
        [
          Effect.forEach(ops, ({ op }) => ask(Aggregation.validateOne(version, op)), {
            concurrency: "unbounded"
          }),
          ask(
            Aggregation.aggregate(
              version,
              ops.map(({ op }) => op)
            )
          )
        ],
        { concurrency: "unbounded" }
      )
    )
    const refusal = (why: Reasons.Text): ElementFailure => elementFailure("aggregator_refused", why)
    const whole = "aggregated signature"
    const carried: Array<SignedOp> = []
    const refused: Array<readonly [number, ElementFailure]> = []
    for (const [position, own] of ops.entries()) {
      const answer = each[position] ?? { success: false, data: Hex.empty }
      const signature = bytesOf(answer, Hex.size(own.op.signature), "signature", revert)
      if (Result.isFailure(signature)) refused.push([own.index, refusal(signature.failure)])
      else carried.push({ ...own, op: { ...own.op, signature: signature.success } })
    }
    if (refused.length > 0) return yield* Effect.fail(elements(refused))
    const most = ops.reduce((sum, { op }) => sum + Hex.size(op.signature) + perPart, perPart)
    const aggregate = bytesOf(together, most, whole, revert)
    if (Result.isFailure(aggregate)) return yield* Effect.fail(all(refusal(aggregate.failure)))
    const signature = aggregate.success
    const validation = yield* node(
      chain.estimateGas({
        from: entryPoint,
        to: aggregator,
        data: Aggregation.validateAll(
          version,
          carried.map(({ op }) => op),
          signature
        )
      })
    )
    if (!validation.success) {
      const reason = revert(validation.data)
      return yield* Effect.fail(all(refusal(Reasons.text("aggregatorReverted", { field: whole, reason }))))
    }
    return { ops: carried, aggregate: { aggregator, signature, gas: validation.gas } }
  })

/**
 * Signs a bundle of accepted ops: what their payer adds, money that it keeps for them, their own signatures, what an
 * aggregator makes of these, and what the payer signs. Nothing of it leaves the process.
 */
export const sign = (
  requestId: string,
  context: OpContext,
  bundle: ReadonlyArray<Unsigned>,
  revert: (data: Hex.Hex) => string
): Effect.Effect<Signed, Obstacle, OpJournal> =>
  Effect.gen(function* () {
    const opJournal = yield* OpJournal
    const { payer } = context
    const completed = yield* forEach(bundle, ({ complete, index, sign }) =>
      Effect.map(complete, (made) => ({ ...made, index, sign }))
    )
    const unnamed = new Set(bundle.filter(({ userOpHash }) => userOpHash === null).map(({ index }) => index))
    const named = completed.filter(({ index }) => unnamed.has(index))
    if (named.length > 0)
      yield* Effect.orDie(
        opJournal.identify(
          requestId,
          named.map(({ index, userOpHash }) => ({ index, userOpHash }))
        )
      )
    const parts = completed.map(({ index, op, userOpHash }) => ({
      requestId,
      index,
      op,
      given: payer.paymaster === null ? userOpHash : null
    }))
    const lacking = new Map(
      (yield* Effect.mapError(payer.reserve(parts), unkept)).flatMap((failure, place) =>
        failure === null ? [] : [[parts[place]?.index ?? -1, failure] as const]
      )
    )
    const partOf = (index: number) => parts.filter((part) => part.index === index)
    const release = (ops: ReadonlyArray<{ readonly index: number }>) =>
      payer.release(ops.flatMap(({ index }) => partOf(index)))
    return yield* Effect.gen(function* () {
      if (lacking.size > 0) return yield* Effect.fail<Obstacle>({ _tag: "elements", failed: lacking })
      const own = yield* forEach(completed, ({ index, op, sign, userOpHash }) =>
        Effect.map(sign(userOpHash), (signature) => ({ index, op: { ...op, signature }, userOpHash }))
      )
      const { aggregate, ops } = yield* aggregated(context, own, revert)
      const sealed = yield* forEach(ops, ({ index, op, userOpHash }) =>
        Effect.map(
          Effect.forEach(partOf(index), (part) => payer.seal(part, userOpHash)),
          (seals) => ({
            index,
            op: { ...op, signature: Hex.concat(op.signature, ...seals) },
            userOpHash
          })
        )
      )
      return { ops: sealed, aggregate, release }
    }).pipe(Effect.tapError(() => release(completed.filter(({ index }) => !lacking.has(index)))))
  })
