import * as Effect from "effect/Effect"
import * as Results from "../../answers/Results.js"
import { Executed } from "../../answers/TransactionResult.js"
import * as Connection from "../../chain/Connection.js"
import { type Failure, invalidAt } from "../../failures/Failure.js"
import * as Funding from "../../payers/Funding.js"
import type { Payers } from "../../payers/Payer.js"
import type { AbiStore } from "../../ports/AbiStore.js"
import type { ChainRpc } from "../../ports/chain/ChainRpc.js"
import type { Networks } from "../../ports/Networks.js"
import type { Signers, SystemSigners } from "../../ports/Signers.js"
import type { GivenCall } from "../../prepare/Call.js"
import * as GivenLinks from "../../prepare/given/GivenLinks.js"
import type * as GivenOps from "../../prepare/given/GivenOps.js"
import * as OpContext from "../../prepare/OpContext.js"
import * as ServiceEoa from "../../prepare/ServiceEoa.js"
import * as SignerAuthorization from "../../prepare/SignerAuthorization.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import type { ForOps } from "../../request/Settings.js"
import * as Offers from "../Offers.js"
import * as Previews from "../Previews.js"

/** Requests whose ops the service returned unsigned before. */

export type Surroundings = AbiStore | ChainRpc | Networks | Payers | Signers | SystemSigners

/** A route, and the ops where its choice has read them. */
type Way = OpContext.Route & { readonly given?: ReadonlyArray<GivenOps.ParsedOp> }

export interface Posted {
  readonly endpoint: string
  readonly settings: ForOps
  readonly preview: boolean | undefined
  readonly read: (where: GivenOps.Where) => Effect.Effect<ReadonlyArray<GivenOps.ParsedOp>, Failure>
}

/** The signer submits, through the caller's node, or the operator's when it pays for one of the ops. */
const bySigner = (
  caller: Caller,
  { read, settings: { useABI: _, ...settings } }: Posted
): Effect.Effect<Way, Failure, ChainRpc | Networks | Signers> =>
  Effect.gen(function* () {
    const signers = yield* SignerAuthorization.signersOf(caller, settings)
    const [submitter] = signers
    if (submitter === undefined || settings.signer === undefined)
      return yield* Effect.die(new Error("the request names no signer"))
    const opened = yield* Connection.open(caller, settings)
    const { chainId, sponsor } = opened.profile
    const { entryPoint } = settings
    const version = yield* Connection.entryPointVersion(opened.profile, entryPoint)
    const way = { connection: opened, submitter: submitter.address, key: settings.signer, signers, settings }
    if (sponsor === null) return way
    const given = yield* read({ chainId, entryPoint, version })
    const isSponsored = given.some(({ op }) => Funding.paymasterOf(version, op) === sponsor.paymaster)
    const connection = isSponsored ? yield* Connection.openOperator(caller, settings) : opened
    return { ...way, connection, given }
  })

/** The service's EOA submits, through the operator's node. */
const byService = (
  caller: Caller,
  posted: Posted
): Effect.Effect<Way, Failure, ChainRpc | Networks | Signers | SystemSigners> =>
  Effect.gen(function* () {
    const { connection, settings, submitter } = yield* ServiceEoa.open(caller, posted.settings)
    const signers = yield* SignerAuthorization.signersOf(caller, settings)
    return { connection, submitter, key: "serviceEoa", signers, settings }
  })

/** 400 for ops whose paymaster differs from the request's. */
const agree = (
  { settings: { paymaster } }: Posted,
  given: ReadonlyArray<GivenOps.ParsedOp>,
  { version }: GivenOps.Where
): Effect.Effect<void, Failure> => {
  const other = given.find(
    ({ op }) => paymaster !== undefined && Funding.paymasterOf(version, op) !== paymaster
  )
  return other === undefined
    ? Effect.void
    : Effect.fail(
        invalidAt(
          `operations[${other.index}].encodedUserOp`,
          "the op does not name the paymaster of settings.paymaster"
        )
      )
}

export const offerOf = (
  caller: Caller,
  posted: Posted,
  by: "signer" | "service",
  body: string
): Effect.Effect<Offers.Offered<Executed>, Failure, Surroundings> =>
  Effect.gen(function* () {
    const decoding = yield* Decoding.load(caller, posted.settings.useABI)
    const { given, ...route } = yield* by === "signer" ? bySigner(caller, posted) : byService(caller, posted)
    // Each op names its payer.
    const { paymaster: _, ...settings } = route.settings
    const context = yield* OpContext.of(caller, { ...route, settings })
    const ops = given ?? (yield* posted.read(context))
    yield* agree(posted, ops, context)
    const dependencies = yield* Effect.fromResult(GivenLinks.dependencies(ops, context))
    const { ledger } = context.connection.profile
    const calls = ops.map(
      (each): GivenCall => ({
        ...each,
        requestId: caller.requestId,
        kind: "given",
        wallet: each.op.sender,
        dependsOn: dependencies[each.index] ?? null
      })
    )
    const { revert } = decoding
    return Offers.make({
      caller,
      endpoint: posted.endpoint,
      context,
      calls,
      body,
      revert,
      preview: yield* Previews.of(caller, posted.preview, { calls, context, revert }),
      Response: Executed,
      answer: (outcomes) =>
        Results.execution(
          ops.map(({ index }) => index),
          outcomes,
          (index, data) => {
            const own = ops[index]
            return own === undefined ? data : GivenLinks.returnData(ledger, own, data)
          },
          decoding,
          dependencies
        )
    })
  })
