import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import type { Address } from "../../domain/evm/Address.js"
import * as Hex from "../../domain/evm/Hex.js"
import * as Conditions from "../../domain/op/Conditions.js"
import * as Proof from "../../domain/op/Proof.js"
import * as UserOperation from "../../domain/op/UserOperation.js"
import type { Ground } from "../engine/Preparation.js"
import * as Wallets from "../engine/Wallets.js"
import { type Failure, invalid, notAvailable } from "../Failure.js"
import { Custody, optional, UnixSeconds } from "../Fields.js"

export const EncodedOperation = Schema.Struct({
  encodedUserOp: Hex.schema,
  userOpHash: Hex.schema32,
  walletCustody: Custody,
  validAfter: optional(UnixSeconds),
  validUnitl: optional(UnixSeconds),
  signature: optional(Hex.schema).annotations({
    description: "r, s and v over userOpHash or signingHash. Absent: settings.signer signs."
  })
}).annotations({ identifier: "EncodedOperation" })
export type EncodedOperation = typeof EncodedOperation.Type

/** An op of the request, read and checked as far as that needs no chain. */
export interface Given {
  readonly index: number
  readonly op: UserOperation.UserOperation
  readonly userOpHash: Hex.Bytes32
  readonly walletCustody: number
  /** The caller's proof; null: the service signs. */
  readonly proof: Hex.Hex | null
}

/** One op of the request; 400 for what it says wrongly, and for what this version does not offer. */
const readOne = (
  operation: EncodedOperation,
  index: number,
  { chainId, entryPoint, version }: Pick<Ground, "chainId" | "entryPoint" | "version">
): Either.Either<Given, Failure> =>
  Either.gen(function* () {
    const path = `operations[${index}]`
    const wrong = (field: string, message: string) =>
      Either.left(invalid("invalid_request", [{ path: `${path}.${field}`, message }]))
    if ((operation.validAfter ?? 0) !== 0)
      yield* Either.left(notAvailable("validAfter", `${path}.validAfter`))
    if ((operation.validUnitl ?? 0) !== 0)
      yield* Either.left(notAvailable("validUnitl", `${path}.validUnitl`))
    yield* Wallets.availableCustody(operation.walletCustody, `${path}.walletCustody`)
    const decoded = UserOperation.decode(version, operation.encodedUserOp)
    if (Either.isLeft(decoded)) return yield* wrong("encodedUserOp", decoded.left)
    const op = decoded.right
    const fits = UserOperation.fits(version, op)
    if (Either.isLeft(fits)) return yield* wrong("encodedUserOp", fits.left)
    if (op.initCode !== Hex.empty)
      return yield* wrong("encodedUserOp", "initCode must be empty: wallets are deployed by /create")
    if (op.paymasterAndData !== Hex.empty)
      yield* Either.left(notAvailable("paymaster", `${path}.encodedUserOp`))
    if (op.signature !== Hex.empty)
      return yield* wrong("encodedUserOp", "the op's signature must be empty: send the proof as signature")
    const userOpHash = UserOperation.hash(version, entryPoint, chainId, op)
    if (userOpHash !== operation.userOpHash)
      return yield* Either.left(
        invalid("hash_mismatch", [
          {
            path: `${path}.userOpHash`,
            message: `the hash of encodedUserOp at this EntryPoint and chain is ${userOpHash}`
          }
        ])
      )
    return {
      index,
      op,
      userOpHash,
      walletCustody: operation.walletCustody,
      proof: operation.signature ?? null
    }
  })

/** The same op twice would be one op that is done once. */
const distinct = (given: ReadonlyArray<Given>): Either.Either<void, Failure> => {
  const first = new Map<Hex.Bytes32, number>()
  for (const { index, userOpHash } of given) {
    const before = first.get(userOpHash)
    if (before !== undefined)
      return Either.left(
        invalid("invalid_request", [
          { path: `operations[${index}].userOpHash`, message: `operations[${before}] is the same op` }
        ])
      )
    first.set(userOpHash, index)
  }
  return Either.void
}

/** All ops of the request, no two of them the same. */
export const read = (
  operations: ReadonlyArray<EncodedOperation>,
  ground: Pick<Ground, "chainId" | "entryPoint" | "version">
): Either.Either<ReadonlyArray<Given>, Failure> =>
  Either.gen(function* () {
    const given = yield* Either.all(operations.map((operation, index) => readOne(operation, index, ground)))
    yield* distinct(given)
    return given
  })

/** Under which conditions the caller's proof is one of the wallet's owner; `Left` says what was expected. */
export const conditionsOf = (
  given: Given & { readonly proof: Hex.Hex },
  owners: ReadonlyArray<Address>,
  bundler: Address
): Either.Either<{ readonly conditions: Conditions.Conditions; readonly proof: Hex.Hex }, string> =>
  Either.flatMap(Proof.normalise(given.proof), (proof) => {
    const bound = { validUntil: 0, validAfter: 0, bundler }
    for (const conditions of [Conditions.none, bound]) {
      const parts = Proof.ecdsaSigners(Conditions.signingHash(given.userOpHash, conditions), proof)
      const [only] = parts
      if (parts.length === 1 && only?.some((signer) => signer !== null && owners.includes(signer)))
        return Either.right({ conditions, proof })
    }
    const expected = `userOpHash or signingHash ${Conditions.signingHash(given.userOpHash, bound)}`
    return Either.left(`expected one signature by ${owners.join(" or ")} over ${expected}`)
  })
