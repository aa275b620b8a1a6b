import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Replacement from "../../../domain/erc4337/gas/Replacement.js"
import * as Results from "../../answers/Results.js"
import * as Connection from "../../chain/Connection.js"
import * as Prices from "../../chain/Prices.js"
import * as Keys from "../../keys/Keys.js"
import type { Engine } from "../../lanes/Engine.js"
import * as NonceManager from "../../lanes/NonceManager.js"
import * as Acceptance from "../../lanes/requests/Acceptance.js"
import { Requests } from "../../lanes/requests/Requests.js"
import * as WakeUps from "../../lanes/requests/WakeUps.js"
import { TransactionMonitor } from "../../lanes/TransactionMonitor.js"
import * as Span from "../../observe/Span.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { JournalError } from "../../ports/journal/JournalError.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { RequestRecord } from "../../ports/journal/Requests.js"
import { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { Networks } from "../../ports/Networks.js"
import type { Signer, SignerError, Signers } from "../../ports/Signers.js"
import * as OpContext from "../../prepare/OpContext.js"
import type { Caller } from "../../request/Caller.js"
import { type AnsweredElsewhere, CurrentRequest } from "../../request/CurrentRequest.js"
import * as Decoding from "../../request/Decoding.js"
import * as Delays from "../../request/Delays.js"
import { type Failure, unprocessable } from "../../request/Failure.js"
import { optional } from "../../request/Fields.js"
import * as Reasons from "../../request/Reasons.js"
import * as Settings from "../../request/Settings.js"
import { Executed } from "../../request/TransactionResult.js"

/** Prices waiting transactions anew. */

export const Request = Schema.Struct({
  settings: Settings.ForSigner,
  dryRun: optional(Schema.Boolean, false).annotateKey({
    description: "Only tell what would be replaced, by what, at which price."
  }),
  fillUnknown: optional(Schema.Boolean, false).annotateKey({
    description:
      "Also replace waiting transactions that the service did not send, by a transfer of nothing to the signer itself. What they pay is not known: where the node finds the transfer too cheap, raise percentTxGasPriceOvershoot."
  })
}).annotate({ identifier: "UnstuckRequest" })
export type Request = typeof Request.Type

export const Replaced = Schema.Struct({
  nonce: Schema.Int,
  oldTxHash: Schema.NullOr(Schema.String).annotate({
    description: "Null for a transaction that the service did not send."
  }),
  newTxHash: Schema.NullOr(Schema.String).annotate({ description: "Null in a dry run." }),
  maxFeePerGas: Schema.String.annotate({ description: "Wei, decimal." }),
  maxPriorityFeePerGas: Schema.String.annotate({ description: "Wei, decimal." })
}).annotate({ identifier: "Replaced" })
type Replaced = typeof Replaced.Type

export const Response = Schema.Struct({
  ...Executed.fields,
  status: Schema.Int.annotate({ description: "0 failed, 1 success, 2 nothing was sent" }),
  replaced: Schema.Array(Replaced),
  unknown: Schema.Array(Schema.Int).annotate({
    description: "Nonces of waiting transactions that the service did not send, and that were left alone."
  })
}).annotate({ identifier: "UnstuckResult" })
export type Response = typeof Response.Type

/** What its requests need beside the caller. */
export type Requirements =
  | AbiStore
  | ChainRpc
  | Engine
  | RequestJournal
  | TransactionJournal
  | Networks
  | Signers

export const kind = { endpoint: "/unstuck", Request, Response }

/**
 * Prices the waiting transactions of a signer anew, each under its own nonce and with its own payload, and answers with
 * what became of the oldest.
 */
export const run = (caller: Caller, request: Request): Effect.Effect<Response, Failure, Requirements> =>
  Effect.flatMap(Requests, (requests) => requests.run(kind, caller, request, work(caller, request)))

/** What is about to be replaced: kept with the request, so that it is told of also when the process dies at it. */
const Plan = Schema.fromJsonString(
  Schema.Struct({
    unknown: Schema.Array(Schema.Int),
    replaced: Schema.Array(
      Schema.Struct({ nonce: Schema.BigIntFromString, oldTxHash: Schema.NullOr(Schema.String) })
    )
  })
)
type Plan = typeof Plan.Type

const planOf = (record: RequestRecord | null): Plan | null =>
  record === null || record.note === null ? null : Schema.decodeSync(Plan)(record.note)

/** Most nonces of others that one request looks at. */
const maxUnknown = 64n

const path = "settings.signer"

/**
 * A node or a key that fails may do it later. Money and the operator's cap are of the moment in which it was asked for: what
 * the caller wants then is for the caller to say again.
 */
const isAwaited = (failure: Failure): boolean =>
  failure.code !== "fees_above_cap" &&
  failure.code !== "insufficient_funds" &&
  Delays.ofFailure(failure) !== null

const toFailure =
  (nonce: bigint, { address }: Signer) =>
  (error: NonceManager.LaneDamaged | NonceManager.LaneFunds | SignerError | JournalError) => {
    switch (error._tag) {
      case "JournalError":
        return Effect.die(error)
      case "LaneFunds":
        return Effect.fail(
          unprocessable("insufficient_funds", [
            { path, message: Reasons.text("signerFunds", { signer: address, missing: error.missing }) }
          ])
        )
      case "LaneDamaged":
        return Effect.andThen(
          Effect.annotateLogs(Effect.logError("a stored transaction can not be replaced"), {
            signer: address,
            nonce: nonce.toString(),
            detail: error.message
          }),
          Effect.fail(
            unprocessable("signer_unavailable", [
              { path, message: Reasons.text("notReplaceable", { nonce }) }
            ])
          )
        )
      case "SignerError":
        return Effect.fail(Keys.refusal(path)(error))
    }
  }

const work = (
  caller: Caller,
  { dryRun = false, fillUnknown = false, settings }: Request
): Effect.Effect<Response, Failure | AnsweredElsewhere, Requirements | CurrentRequest> =>
  Effect.gen(function* () {
    const decoding = yield* Decoding.load(caller, settings.useABI)
    const signer = yield* Keys.resolve(caller, settings.signer)
    const connection = yield* Connection.open(caller, settings)
    const { chain, profile, trust } = connection
    const { chainId } = profile
    const lane = { chainId, signer: signer.address }
    const requestJournal = yield* RequestJournal
    const transactionJournal = yield* TransactionJournal
    const current = yield* CurrentRequest
    const lanes = yield* NonceManager.NonceManager
    const wakeUps = yield* WakeUps.WakeUps
    const monitor = yield* TransactionMonitor
    const access = Connection.access(caller, connection, settings.signer)

    /** `priced`: of the transactions that wait, those whose nonce is wanted. */
    const look = (isWanted: (nonce: bigint) => boolean) =>
      Effect.gen(function* () {
        const [quote, latest, pending, balance] = yield* Effect.all(
          [
            Prices.now(connection, OpContext.buffers(settings).price),
            Effect.mapError(chain.transactionCount(signer.address, "latest"), Connection.refusal(trust)),
            Effect.mapError(chain.transactionCount(signer.address, "pending"), Connection.refusal(trust)),
            Effect.mapError(chain.balance(signer.address), Connection.refusal(trust))
          ],
          { concurrency: "unbounded" }
        )
        const open = yield* Effect.orDie(transactionJournal.openOf(lane))
        const waiting = open.filter(
          ({ nonce, state }) => state === "signed" && nonce >= latest && isWanted(nonce)
        )
        const end = BigInts.min(pending, latest + maxUnknown)
        const known =
          latest < end ? yield* Effect.orDie(transactionJournal.transactionsBetween(lane, latest, end)) : []
        const ours = new Set(known.map(({ nonce }) => nonce))
        const unknown: Array<bigint> = []
        for (let nonce = latest; nonce < end; nonce++) if (!ours.has(nonce)) unknown.push(nonce)
        const priced = yield* Effect.forEach(waiting, (record) =>
          Result.match(
            Replacement.prices({ ...NonceManager.standing(record.versions), quote, caps: profile.caps }),
            {
              onFailure: ({ cap, needed }) =>
                Effect.fail(
                  unprocessable("fees_above_cap", [
                    {
                      path: "",
                      message: Reasons.text("replacementPrice", { nonce: record.nonce, needed, cap })
                    }
                  ])
                ),
              onSuccess: (prices) => Effect.succeed({ record, prices })
            }
          )
        )
        return { quote, latest, balance, priced, unknown }
      })

    const told = (
      nonce: bigint,
      oldTxHash: string | null,
      newTxHash: string | null,
      prices: { readonly maxFeePerGas: bigint; readonly maxPriorityFeePerGas: bigint }
    ): Replaced => ({
      nonce: Number(nonce),
      oldTxHash,
      newTxHash,
      maxFeePerGas: prices.maxFeePerGas.toString(),
      maxPriorityFeePerGas: prices.maxPriorityFeePerGas.toString()
    })
    /** What was replaced of its plan before the process started again. */
    const doneBefore = ({ replaced }: Plan) =>
      Effect.map(
        Effect.forEach(replaced, ({ nonce }) =>
          Effect.orDie(transactionJournal.transactionsBetween(lane, nonce, nonce + 1n))
        ),
        (found) =>
          replaced.flatMap(({ nonce, oldTxHash }, at) => {
            const [record] = found[at] ?? []
            const old = record?.versions.findIndex(({ txHash }) => txHash === oldTxHash) ?? -1
            const version = record?.versions[old + 1]
            if (record === undefined || version === undefined || (old < 0 && oldTxHash !== null)) return []
            return [{ record, replaced: told(nonce, oldTxHash, version.txHash, version) }]
          })
      )

    const nothing = {
      status: 2,
      returnData: [],
      ...(yield* Results.transactionFields([], decoding))
    }

    const begun = current.resumed
      ? planOf(yield* Effect.orDie(requestJournal.request(caller.requestId)))
      : null
    const first = yield* look(begun === null ? () => true : () => false)
    const left = begun !== null ? begun.unknown : fillUnknown ? [] : first.unknown.map(Number)
    const isIdle = first.priced.length === 0 && (!fillUnknown || first.unknown.length === 0)
    if (dryRun || (begun === null && isIdle))
      return {
        ...nothing,
        unknown: left,
        replaced: dryRun
          ? [
              ...first.priced.map(({ prices, record }) =>
                told(record.nonce, record.versions.at(-1)?.txHash ?? null, null, prices)
              ),
              ...(fillUnknown ? first.unknown.map((nonce) => told(nonce, null, null, first.quote)) : [])
            ].sort((a, b) => a.nonce - b.nonce)
          : []
      }

    yield* Acceptance.withoutOps(caller, kind.endpoint, { profile, access, signer: signer.address })
    const sent = yield* lanes.exclusive(
      lane,
      Effect.gen(function* () {
        const done = begun === null ? [] : yield* doneBefore(begun)
        const doneNonces = new Set(done.map(({ record }) => record.nonce))
        const planned = begun === null ? null : new Set(begun.replaced.map(({ nonce }) => nonce))
        const isLeft = (nonce: bigint) => !doneNonces.has(nonce) && (planned === null || planned.has(nonce))
        const replaceRest = Effect.gen(function* () {
          const { balance, priced, quote, unknown } = yield* look(isLeft)
          const fills = fillUnknown ? unknown.filter(isLeft) : []
          if (begun === null) {
            const replaced = [
              ...fills.map((nonce) => ({ nonce, oldTxHash: null })),
              ...priced.map(({ record: { nonce, versions } }) => ({
                nonce,
                oldTxHash: versions.at(-1)?.txHash ?? null
              }))
            ]
            yield* Effect.orDie(
              requestJournal.note(caller.requestId, Schema.encodeSync(Plan)({ unknown: left, replaced }))
            )
          }
          for (const nonce of fills) {
            const record = yield* Effect.catch(
              lanes.fill({ access, chain, chainId, signer, prices: quote, chainNonce: nonce, balance }),
              toFailure(nonce, signer)
            )
            const [version] = record.versions
            done.push({ record, replaced: told(record.nonce, null, version?.txHash ?? null, quote) })
          }
          for (const { prices, record } of priced) {
            const old = record.versions.at(-1)?.txHash ?? null
            const renewed = yield* Effect.catch(
              lanes.replace(record, signer, prices),
              toFailure(record.nonce, signer)
            )
            done.push({
              record: renewed,
              replaced: told(record.nonce, old, renewed.versions.at(-1)?.txHash ?? null, prices)
            })
          }
        })
        yield* Effect.catch(replaceRest, (failure) => {
          if (isAwaited(failure)) return Effect.fail(failure)
          // What is signed is on its way, and told; a request of which nothing is has come to its end.
          return done.length > 0 ? Effect.void : Effect.andThen(current.conclude, Effect.fail(failure))
        })
        done.sort((a, b) => a.replaced.nonce - b.replaced.nonce)
        yield* current.sent(
          done.flatMap(({ record }) => record.versions.slice(-1).map(({ txHash }) => txHash))
        )
        for (const { record } of done) yield* monitor.watch({ chain, profile, record })
        return done
      })
    )
    yield* current.rest
    const [oldest] = sent
    const oldestHash = oldest?.record.versions.at(-1)?.txHash
    const mined =
      oldest === undefined || oldestHash === undefined
        ? null
        : yield* wakeUps.until(
            WakeUps.transaction(oldest.record),
            // Of the lane: it may be another account's, which has had this signer before or shares it.
            Effect.map(Effect.orDie(transactionJournal.transactionOf(lane, oldestHash)), (record) =>
              record?.state === "external" ? { txHash: null } : (record?.mined ?? null)
            )
          )
    const receipt =
      mined === null || mined.txHash === null ? null : yield* monitor.receiptOf(chain, mined.txHash)
    yield* current.conclude
    const replaced = sent.map((each) => each.replaced)
    return receipt === null
      ? { ...nothing, replaced, unknown: left }
      : {
          ...nothing,
          ...(yield* Results.transactionFields([receipt], decoding)),
          status: receipt.success ? 1 : 0,
          replaced,
          unknown: left
        }
  }).pipe(Span.named("Unstuck"))
