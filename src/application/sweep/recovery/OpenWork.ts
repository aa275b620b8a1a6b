import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as EntryPoint from "../../../domain/erc4337/EntryPoint.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import type { Address } from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Connection from "../../chain/Connection.js"
import * as Inclusions from "../../chain/Inclusions.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { OpRecord, RequestRecord } from "../../ports/journal/Requests.js"
import type { LaneAccess } from "../../ports/journal/Transactions.js"
import type { Networks } from "../../ports/Networks.js"
import * as Calls from "../../prepare/EncodeCall.js"
import * as OpContext from "../../prepare/OpContext.js"
import * as Wallets from "../../prepare/wallets/Wallets.js"
import type { Caller } from "../../request/Caller.js"
import type { Failure } from "../../request/Failure.js"
import * as ExecuteOperations from "../../usecases/operations/ExecuteOperations.js"
import * as TransactSigner from "../../usecases/operations/TransactSigner.js"
import * as CreateWallets from "../../usecases/wallets/CreateWallets.js"
import type * as Matching from "./Matching.js"

/** What an accepted request would still bring onto the chain, as far as its body and the journal tell. */
export interface OpenWork {
  readonly record: RequestRecord
  readonly connection: Connection.Connection
  readonly access: LaneAccess
  /** Of its ops; null: it has none that are looked for. */
  readonly entryPoint: { readonly address: Address; readonly version: EntryPoint.Version } | null
  readonly ops: ReadonlyArray<Matching.Wanted<number>>
  /** Its own transaction; null: it has none, or that is known. */
  readonly direct: Matching.Payload | null
}

const nothing = { entryPoint: null, ops: [], direct: null } as const

/** Elements that are neither on their way nor at their end. */
const isOpen = ({ failed, ops }: RequestRecord) => {
  const latest = new Map(ops.map((op) => [op.index, op]))
  const given = new Set(failed.filter(({ code }) => code !== "dependency_failed").map(({ index }) => index))
  return (index: number): boolean => {
    const state = latest.get(index)?.state ?? "abandoned"
    return !given.has(index) && (state === "accepted" || state === "abandoned")
  }
}

const nonceOf = (op: OpRecord | undefined): bigint | null =>
  op?.state === "accepted" ? Nonce.make(op.nonceKey, op.sequence) : null

const versionOf = (address: Address) => {
  const version = EntryPoint.versionOf(address)
  return version === undefined ? null : { address, version }
}

const decoder = <A, I>(schema: Schema.Codec<A, I>) =>
  Schema.decodeUnknownOption(Schema.fromJsonString(schema))
const readExecute = decoder(ExecuteOperations.Request)
const readCreate = decoder(CreateWallets.Request)
const readDirect = decoder(TransactSigner.Request)
/** Of any other endpoint, how it names its node. */
const readNode = decoder(
  Schema.Struct({
    settings: Schema.Struct({ rpc: Schema.optional(Schema.String), chainId: Schema.optional(Schema.Int) })
  })
)

type Needs = ChainRpc | Networks
type Found = Effect.Effect<OpenWork, Failure, Needs>

const ofExecute = (
  caller: Caller,
  record: RequestRecord,
  { operations, settings }: ExecuteOperations.Request
): Found =>
  Effect.gen(function* () {
    const connection = yield* OpContext.connect(caller, settings)
    const { profile } = connection
    const formula = yield* Effect.fromResult(Wallets.formula(profile, settings))
    const calls = yield* Calls.encodeAll(operations)
    const open = isOpen(record)
    const since = record.acceptedAt - Inclusions.skewMillis
    const ops = yield* Effect.forEach(
      calls.filter(({ index }) => open(index)),
      ({ call, index, selector }) =>
        Effect.fromResult(
          Result.map(
            Wallets.select(selector, formula, profile, `operations[${index}]`),
            (wallet): Matching.Wanted<number> => ({
              id: index,
              wallet,
              call,
              nonce: nonceOf(record.ops.find((op) => op.index === index)),
              ledger: profile.ledger,
              since
            })
          )
        )
    )
    const access = Connection.access(caller, connection, settings.signer)
    return { ...nothing, record, connection, access, entryPoint: versionOf(settings.entryPoint), ops }
  })

/** A creation has a nonce from its acceptance on, and its wallet stands with it. */
const ofCreate = (caller: Caller, record: RequestRecord, { settings }: CreateWallets.Request): Found =>
  Effect.map(Connection.openOperator(caller, settings), (connection) => ({
    ...nothing,
    record,
    connection,
    access: Connection.access(caller, connection, settings.signer),
    entryPoint: versionOf(settings.entryPoint),
    ops: record.ops
      .filter(({ index, state }) => state === "accepted" && isOpen(record)(index))
      .map((op) => ({
        id: op.index,
        wallet: op.space.wallet,
        call: null,
        nonce: nonceOf(op),
        ledger: null,
        since: record.acceptedAt - Inclusions.skewMillis
      }))
  }))

const ofDirect = (
  caller: Caller,
  record: RequestRecord,
  { funcParams, funcSignature, settings, to, value }: TransactSigner.Request
): Found =>
  Effect.gen(function* () {
    const connection = yield* Connection.open(caller, settings)
    const data =
      funcSignature === undefined
        ? Hex.empty
        : (yield* Effect.fromResult(Calls.encodeCall(funcSignature, funcParams ?? [], ""))).data
    return {
      ...nothing,
      record,
      connection,
      access: Connection.access(caller, connection, settings.signer),
      direct: record.txHashes.length > 0 ? null : { to, value: value ?? 0n, data }
    }
  })

/** Null: its body cannot be read here, so that it cannot go on either. */
export const of = (caller: Caller, record: RequestRecord): Found | null => {
  const { body, endpoint } = record
  if (body === null) return null
  const read = <A>(option: { readonly _tag: string; readonly value?: A }, then: (request: A) => Found) =>
    option._tag === "Some" ? then(option.value as A) : null
  switch (endpoint) {
    case ExecuteOperations.kind.endpoint:
      return read(readExecute(body), (request) => ofExecute(caller, record, request))
    case CreateWallets.kind.endpoint:
      return read(readCreate(body), (request) => ofCreate(caller, record, request))
    case TransactSigner.kind.endpoint:
      return read(readDirect(body), (request) => ofDirect(caller, record, request))
    default:
      return read(readNode(body), ({ settings: { chainId, rpc } }) =>
        Effect.map(
          Connection.open(caller, {
            ...(rpc !== undefined && { rpc }),
            ...(chainId !== undefined && { chainId })
          }),
          (connection) => ({
            ...nothing,
            record,
            connection,
            access: Connection.access(caller, connection, "serviceEoa")
          })
        )
      )
  }
}
