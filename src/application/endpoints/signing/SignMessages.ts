import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Eip712 from "../../../domain/evm/Eip712.js"
import * as Documents from "../../../domain/policy/Documents.js"
import type { Movement } from "../../../domain/policy/Movements.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as InvalidValue from "../../../domain/primitives/InvalidValue.js"
import * as Uint from "../../../domain/primitives/Uint.js"
import * as OperationProof from "../../../domain/signature/OperationProof.js"
import * as PersonalMessage from "../../../domain/signature/PersonalMessage.js"
import * as SignatureFormat from "../../../domain/signature/SignatureFormat.js"
import * as TypedData from "../../../domain/signature/typed/TypedData.js"
import type { ElementFailure } from "../../failures/Elements.js"
import { invalidAt, unprocessable } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import * as Keys from "../../keys/Keys.js"
import * as Span from "../../observe/Span.js"
import * as Signing from "../../policies/Signing.js"
import type { Caller } from "../../request/Caller.js"
import { optional, shown } from "../../request/Fields.js"
import { SignerRef } from "../../request/Settings.js"
import * as EventLoop from "../../runtime/EventLoop.js"
import * as KillSwitch from "../../tenants/KillSwitch.js"

export const Request = Schema.Struct({
  messages: Schema.Array(Schema.String).annotate({ description: "One signature each." }),
  format: optional(Schema.Literals(["rsv", "hex", "compact", "der"]), "rsv").annotateKey({
    description:
      "rsv: an object. hex: r, s and v, 65 bytes. compact: 64 bytes (EIP-2098). der: ASN.1, without v. Default rsv."
  }),
  hashed: optional(Schema.Boolean, false).annotateKey({
    description: "True: the messages are 32 bytes in hex, signed as they are. Default false."
  }),
  signer: SignerRef,
  allowOperationHash: optional(Schema.Boolean, false).annotateKey({
    description:
      "True: also signs what could be the proof of an operation: messages of exactly 32 bytes, and typed data of the domains castellan, castellan approvals and ERC4337. Default false: such a message is an element of errors."
  }),
  eip712: optional(
    Schema.Struct({
      address: optional(shown(Address.schema, { description: "verifyingContract of the domain." })),
      chainId: optional(shown(Uint.schema, { description: "Of any chain." }))
    }).annotate({ identifier: "Eip712" })
  ).annotateKey({
    description: "Messages are signed as EIP-712 structured data; these complete the domain of a document."
  })
}).annotate({ identifier: "SignRequest" })
export type Request = typeof Request.Type

const Rsv = Schema.Struct({
  r: Schema.String.annotate({ description: "0x and 64 hex digits." }),
  s: Schema.String.annotate({ description: "0x and 64 hex digits, in the lower half." }),
  v: Schema.Int.annotate({ description: "27 or 28" })
}).annotate({ identifier: "Signature" })

export const Response = Schema.Array(
  Schema.Struct({
    address: Schema.String,
    publicKey: Schema.String.annotate({ description: "Uncompressed point, 130 hex digits without 0x." }),
    signatures: Schema.Array(Schema.NullOr(Schema.Union([Rsv, Schema.String]))).annotate({
      description: "In the order of the messages, in the request's format; null where there is none."
    }),
    errors: Schema.NullOr(Schema.Array(Schema.NullOr(Schema.String))).annotate({
      description: "In the order of the messages; null where nothing went wrong, and when nothing did at all."
    })
  })
).annotate({ identifier: "SignResponse" })
export type Response = typeof Response.Type

interface Digest extends Signing.Content {
  /** Whether its signature could be the proof of an operation hidden from the caller. */
  readonly isProof: boolean
}

const plain = (hash: Hex.Bytes32, read: Movement, isProof = false): Digest => ({
  hash,
  isProof,
  movements: () => (isProof ? [read, Documents.hash] : [read])
})

const typed = (
  document: TypedData.Document,
  given: TypedData.Given,
  isProof: boolean
): Result.Result<Digest, string> =>
  Result.map(TypedData.parts(document, given), (parts) => ({
    hash: Eip712.digest(parts.separator, parts.contents),
    isProof,
    movements: () => [...Documents.of(parts), ...(isProof ? [Documents.hash] : [])]
  }))

/** The digest of a message; `Failure` says why it has none. */
const digestOf = ({ eip712, hashed = false }: Request, message: string): Result.Result<Digest, string> => {
  if (hashed)
    return Result.map(InvalidValue.toText(Hex.from32(message)), (hash) => plain(hash, Documents.hash))
  const read = TypedData.read(message)
  if (read !== null && Result.isFailure(read)) return Result.fail(read.failure)
  const document = read?.success ?? null
  if (eip712 === undefined) {
    // Typed data that is signed as plain text must still be valid.
    const checked = document === null ? null : TypedData.digest(document, {})
    if (checked !== null && Result.isFailure(checked)) return Result.fail(checked.failure)
    const bytes = PersonalMessage.bytes(message)
    if (Result.isFailure(bytes)) return Result.fail(bytes.failure)
    const isProof =
      OperationProof.isMessage(bytes.success) || (document !== null && OperationProof.isDocument(document))
    return Result.succeed(plain(PersonalMessage.digest(bytes.success), Documents.message, isProof))
  }
  const { address: verifyingContract, chainId } = eip712
  const given = {
    ...(verifyingContract !== undefined && { verifyingContract }),
    ...(chainId !== undefined && { chainId })
  }
  if (document !== null) return typed(document, given, OperationProof.isDocument(document))
  return chainId === undefined || verifyingContract === undefined
    ? Result.fail("a message other than typed data needs eip712.address and eip712.chainId")
    : typed(TypedData.ofMessage(message), given, false)
}

const guarded = "looks like an operation: set allowOperationHash"

/** The act's author in the audit log, where the caller has lifted the guard. */
const lifted = { endpoint: "/sign allowOperationHash" }

interface Failed {
  readonly why: string
  /** The signer has failed. */
  readonly signer?: true
  /** By a spending rule or a decision hook. */
  readonly refusal?: ElementFailure
}

const fail = (failed: Failed) => Result.fail(failed)

/** The signer of a request, and its messages' digests; a digest is made where the message may be signed. */
export const prepare = Effect.fnUntraced(function* (caller: Caller, request: Request) {
  const { allowOperationHash, eip712, hashed, messages } = request
  if (hashed === true && eip712 !== undefined)
    return yield* invalidAt("hashed", "expected false with eip712: the service hashes structured data itself")
  const signer = yield* Keys.resolve(caller, request.signer, "signer")
  yield* KillSwitch.check({ what: { kind: "signer", address: signer.address }, path: "signer" })
  // Hash all messages before signing the first: digests requested at the same moment travel together.
  const digests = yield* EventLoop.map(messages, (message) =>
    Result.filterOrFail(
      digestOf(request, message),
      ({ isProof }) => !isProof || allowOperationHash === true,
      () => guarded
    )
  )
  const asker: Signing.Asker = {
    caller,
    endpoint: "/sign",
    signers: [signer.address],
    wallet: null,
    chainId: null
  }
  return { asker, digests, signer }
})

/** Signs messages with a key of the account. Each message is signed, or fails, separately. */
export const run = Effect.fnUntraced(function* (caller: Caller, request: Request) {
  const { format = "rsv", messages } = request
  const { asker, digests, signer } = yield* prepare(caller, request)
  const contents = digests.flatMap((made, index) =>
    Result.isSuccess(made) ? [[index, made.success] as const] : []
  )
  const refusals = yield* Signing.judge(asker, new Map(contents), "each")
  const allowed = digests.map((made, index) => {
    if (Result.isFailure(made)) return fail({ why: made.failure })
    const refusal = refusals.get(index)
    return refusal === undefined
      ? Result.succeed(made.success)
      : fail({ why: `${refusal.code}: ${refusal.message}`, refusal })
  })
  const sign = (digest: Digest) =>
    signer.sign(digest.hash).pipe(
      Effect.annotateLogs(digest.isProof ? lifted : {}),
      Keys.audited(caller, signer, digest.hash, {
        purpose: "sign",
        ...(digest.isProof && { allowOperationHash: true })
      }),
      Effect.mapBoth({
        onSuccess: (signature) => SignatureFormat.write(signature, format),
        onFailure: (error): Failed => ({ why: error.message, signer: true })
      })
    )
  const outcomes = yield* Effect.forEach(
    allowed,
    (each) => Effect.result(Effect.flatMap(Effect.fromResult(each), sign)),
    { concurrency: "unbounded" }
  )
  const failures = outcomes.flatMap((outcome, index) =>
    Result.isFailure(outcome) ? [{ ...outcome.failure, path: `messages[${index}]` }] : []
  )
  if (failures.length === messages.length && failures.some((failure) => failure.signer))
    return yield* unprocessable(
      "signer_unavailable",
      failures.map(({ path, why }) => ({ path, message: Reasons.text("notSigned", { problem: why }) }))
    )
  const refused = failures.flatMap(({ path, refusal }) => (refusal === undefined ? [] : [{ path, refusal }]))
  const [code = "policy_refused", ...others] = new Set(refused.map(({ refusal }) => refusal.code))
  if (refused.length > 0 && refused.length === messages.length)
    return yield* unprocessable(
      others.length === 0 ? code : "policy_refused",
      refused.map(({ path, refusal: { figures, message } }) => ({ path, message, ...figures }))
    )
  return [
    {
      address: signer.address,
      publicKey: signer.publicKey,
      signatures: outcomes.map((outcome) => Result.getOrNull(outcome)),
      errors:
        failures.length === 0
          ? null
          : outcomes.map((outcome) => (Result.isFailure(outcome) ? outcome.failure.why : null))
    }
  ]
}, Span.named("SignMessages"))
