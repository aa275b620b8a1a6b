import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as PaymasterData from "../../../domain/erc4337/paymaster/PaymasterData.js"
import * as UserOperation from "../../../domain/erc4337/UserOperation.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as WebAuthn from "../../../domain/signature/WebAuthn.js"
import * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import { type Failure, invalidAt } from "../../failures/Failure.js"
import { Custody, optional, shown, UnixSeconds } from "../../request/Fields.js"
import * as EventLoop from "../../runtime/EventLoop.js"
import type { Evidence, GivenCall } from "../Call.js"
import type { OpContext } from "../OpContext.js"
import * as Windows from "../ops/Windows.js"

const opFields = {
  encodedUserOp: shown(Hex.schema, {
    description: "ABI encoding of the op, as returned by the service, with an empty signature."
  }),
  userOpHash: shown(Hex.schema32, {
    description: "The op's ERC-4337 hash; must equal the hash that the service computes."
  })
}

const windowFields = {
  validAfter: optional(UnixSeconds, 0).annotateKey({
    description: "First second of the signed window; 0: no bound."
  }),
  validUnitl: optional(UnixSeconds, 0).annotateKey({
    description: "Last second of the signed window; 0: no bound."
  })
}

export const EncodedOperation = Schema.Struct({
  ...opFields,
  walletCustody: Custody,
  ...windowFields,
  signature: shown(optional(Hex.schema), {
    description:
      "The proof: signatures of 65 bytes (r, s, v) one behind the other, or all of 64 (EIP-2098), or the ABI form with passkeys. Without a window over userOpHash or signingHash, with one over signingHash. Absent: settings.signer and settings.cosigners sign."
  })
}).annotate({ identifier: "EncodedOperation" })
export type EncodedOperation = typeof EncodedOperation.Type

/** A passkey's assertion, as the browser gives it. */
export const assertion = {
  signature: Schema.String.annotate({
    description: "base64 or base64url: the assertion's signature, DER or r || s."
  }),
  authenticatorData: Schema.String.annotate({
    description: "base64 or base64url, at most 160 bytes; user present and user verified are set."
  }),
  clientDataJSON: Schema.String.annotate({
    description:
      "base64 or base64url, at most 512 bytes. Its challenge is base64url of signingHash, or of an op's userOpHash when there is no window."
  })
}

export const PasskeyOperation = Schema.Struct({
  ...opFields,
  validationData: Schema.Struct({
    ...assertion,
    ...windowFields
  }).annotate({ identifier: "PasskeyValidationData" })
}).annotate({ identifier: "PasskeyOperation" })
export type PasskeyOperation = typeof PasskeyOperation.Type

/** An op of the request, decoded and checked as far as possible without the chain. */
export type ParsedOp = Pick<GivenCall, "custody" | "evidence" | "index" | "op" | "userOpHash" | "window">

export type Where = Pick<OpContext, "chainId" | "entryPoint" | "version">

const wrong = (path: string, message: string) => Result.fail(invalidAt(path, message))

/** Decodes one element's op; 400 for errors in it. */
const opOf = (
  { encodedUserOp, userOpHash }: Pick<EncodedOperation, "encodedUserOp" | "userOpHash">,
  path: string,
  { chainId, entryPoint, version }: Where
): Result.Result<Pick<ParsedOp, "op" | "userOpHash">, Failure> =>
  Result.gen(function* () {
    const at = `${path}.encodedUserOp`
    const decoded = UserOperation.decode(version, encodedUserOp)
    if (Result.isFailure(decoded)) return yield* wrong(at, decoded.failure)
    const op = decoded.success
    const fits = UserOperation.fits(version, op)
    if (Result.isFailure(fits)) return yield* wrong(at, fits.failure)
    if (op.initCode !== Hex.empty)
      return yield* wrong(at, "initCode must be empty: wallets are deployed by /create")
    if (op.signature !== Hex.empty)
      return yield* wrong(at, "the op's signature must be empty: the proof is a separate field")
    if (!WalletCalls.isCanonical(op.callData))
      return yield* wrong(
        at,
        "callData: expected the canonical ABI encoding of execute or executeBatch, without a byte behind it"
      )
    const data = PaymasterData.read(version, op.paymasterAndData)?.data ?? Hex.empty
    const tooLong = PaymasterData.objection(data)
    if (tooLong !== null) return yield* wrong(at, `paymasterAndData: ${tooLong}`)
    const computed = UserOperation.hash(version, entryPoint, chainId, op)
    if (computed !== userOpHash)
      return yield* Result.fail(
        invalidAt(
          `${path}.userOpHash`,
          `the hash of encodedUserOp at this EntryPoint and chain is ${computed}`,
          "hash_mismatch"
        )
      )
    return { op, userOpHash: computed }
  })

/** Rejects duplicates: the same op twice would be executed once. */
const distinct = (given: ReadonlyArray<ParsedOp>): Result.Result<ReadonlyArray<ParsedOp>, Failure> => {
  const first = new Map<Hex.Bytes32, number>()
  for (const { index, userOpHash } of given) {
    const before = first.get(userOpHash)
    if (before !== undefined)
      return wrong(`operations[${index}].userOpHash`, `operations[${before}] is the same op`)
    first.set(userOpHash, index)
  }
  return Result.succeed(given)
}

const all = <A>(
  operations: ReadonlyArray<A>,
  one: (operation: A, index: number, path: string) => Result.Result<ParsedOp, Failure>
): Effect.Effect<ReadonlyArray<ParsedOp>, Failure> =>
  operations.length === 0
    ? Effect.fromResult(wrong("operations", "expected at least one operation"))
    : Effect.flatMap(
        EventLoop.each(operations, (operation, index) =>
          Effect.fromResult(one(operation, index, `operations[${index}]`))
        ),
        (given) => Effect.fromResult(distinct(given))
      )

/** Decodes all ops of an `/executeEncoded` request; rejects duplicates. */
export const decodeEncoded = (
  operations: ReadonlyArray<EncodedOperation>,
  where: Where
): Effect.Effect<ReadonlyArray<ParsedOp>, Failure> =>
  all(operations, (operation, index, path) =>
    Result.gen(function* () {
      const { signature, walletCustody } = operation
      const window = yield* Windows.read(operation, path)
      const evidence: Evidence =
        signature === undefined ? { _tag: "keys" } : { _tag: "proof", proof: signature }
      const op = yield* opOf(operation, path, where)
      return { ...op, index, custody: walletCustody, window, evidence }
    })
  )

/** Decodes all ops of an `/executePasskey` request; rejects duplicates. */
export const decodePasskey = (
  operations: ReadonlyArray<PasskeyOperation>,
  where: Where
): Effect.Effect<ReadonlyArray<ParsedOp>, Failure> =>
  all(operations, (operation, index, path) =>
    Result.gen(function* () {
      const { validationData } = operation
      const windowPath = `${path}.validationData`
      const window = yield* Windows.read(validationData, windowPath)
      const auth = WebAuthn.read(validationData)
      if (Result.isFailure(auth))
        return yield* wrong(`${windowPath}.${auth.failure.field}`, auth.failure.message)
      const op = yield* opOf(operation, path, where)
      return {
        ...op,
        index,
        custody: 0,
        window,
        evidence: { _tag: "assertion" as const, auth: auth.success }
      }
    })
  )
