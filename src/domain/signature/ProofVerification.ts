import * as Result from "effect/Result"
import type { Address } from "../primitives/Address.js"
import type * as Hex from "../primitives/Hex.js"
import type { WalletConfig } from "../wallet/WalletConfig.js"
import * as Proof from "./Proof.js"
import * as WebAuthn from "./WebAuthn.js"

/** A wallet's refusal of a proof: a part is invalid, or there are too few. */
export interface Refusal {
  readonly kind: "threshold" | "invalid"
  readonly message: string
}

const invalid = (message: string): Refusal => ({ kind: "invalid", message })

/** Too few of the validators. */
export const threshold = (have: number, { threshold: needed }: WalletConfig): string =>
  `threshold not met: have ${have} of ${needed}`

/** The owner of every signature; no owner twice. */
const ownersOf = (
  { owners }: WalletConfig,
  signingHash: Hex.Bytes32,
  ecdsa: Hex.Hex
): Result.Result<ReadonlyArray<Address>, Refusal> => {
  const first = new Map<Address, number>()
  const eip191 = Proof.eip191(signingHash)
  for (let index = 0; index < Proof.signatures(ecdsa); index++) {
    const raw = Proof.signer(signingHash, ecdsa, index)
    const byHash = owners.find((each) => each === raw)
    const personal = byHash === undefined ? Proof.signer(eip191, ecdsa, index) : null
    const owner = byHash ?? owners.find((each) => each === personal)
    if (owner === undefined)
      return Result.fail(
        invalid(
          `signature ${index} is by no owner of the wallet over ${signingHash}: ${raw ?? "nobody"} would have signed it, or ${personal ?? "nobody"} its EIP-191 form`
        )
      )
    const before = first.get(owner)
    if (before !== undefined)
      return Result.fail(invalid(`signature ${index} is by ${owner}, as signature ${before} is already`))
    first.set(owner, index)
  }
  return Result.succeed([...first.keys()])
}

/** Every assertion by the passkey that it names, and no passkey twice. */
const verifyPasskeys = (
  { passkeys }: WalletConfig,
  signingHash: Hex.Bytes32,
  parts: ReadonlyArray<Proof.PasskeyPart>
): Result.Result<void, Refusal> =>
  Result.gen(function* () {
    const first = new Map<number, number>()
    for (const [at, { auth, index }] of parts.entries()) {
      const wrong = (message: string) => Result.fail(invalid(`passkey ${at}: ${message}`))
      const key = passkeys[index]
      if (key === undefined)
        return yield* wrong(`its index is ${index}, but the wallet has ${passkeys.length} passkeys`)
      const before = first.get(index)
      if (before !== undefined)
        return yield* wrong(`its index is ${index}, as that of passkey ${before} is already`)
      first.set(index, at)
      yield* Result.mapError(WebAuthn.check(auth, signingHash), (why) => invalid(`passkey ${at}: ${why}`))
      if (WebAuthn.signedBy(auth, [key]) === null)
        return yield* wrong(`the signature is not by the wallet's passkey ${index}`)
    }
  })

/** A validator of a wallet: an owner, or a passkey by its position in the configuration. */
export type Validator = Address | number

/** Whose signatures over this signing hash the parts are. Every part is valid, and no two parts are by the same validator. */
export const validatorsOf = (
  config: WalletConfig,
  signingHash: Hex.Bytes32,
  { ecdsa, passkeys }: Proof.Parts
): Result.Result<ReadonlyArray<Validator>, Refusal> =>
  Result.gen(function* () {
    const owners = yield* ownersOf(config, signingHash, ecdsa)
    yield* verifyPasskeys(config, signingHash, passkeys)
    return [...owners, ...passkeys.map(({ index }) => index)]
  })

/**
 * Whether a wallet of this configuration takes the proof over this signing hash, by the rules of
 * `CustodyValidator.verify`. Every part is valid, no two parts are by the same validator, and there are enough parts.
 * v may be 0 or 1, which `Proof.normalise` raises for the chain.
 */
export const verify = (
  config: WalletConfig,
  signingHash: Hex.Bytes32,
  proof: Hex.Hex
): Result.Result<void, Refusal> =>
  Result.gen(function* () {
    const parts = yield* Result.mapError(Result.flatMap(Proof.normalise(proof), Proof.decode), invalid)
    const { length: have } = yield* validatorsOf(config, signingHash, parts)
    if (have < Math.max(config.threshold, 1))
      yield* Result.fail<Refusal>({ kind: "threshold", message: threshold(have, config) })
  })
