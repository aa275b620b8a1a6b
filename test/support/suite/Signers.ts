import type * as Address from "../../../src/domain/primitives/Address.js"
import type * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Proof from "../../../src/domain/signature/Proof.js"

/** For each signature of a proof, in order: the signers that match the hash and its EIP-191 form. */
export const ecdsaSigners = (
  hash: Hex.Bytes32,
  proof: Hex.Hex
): ReadonlyArray<readonly [raw: Address.Address | null, personal: Address.Address | null]> =>
  Array.from({ length: Proof.signatures(proof) }, (_, index) => [
    Proof.signer(hash, proof, index),
    Proof.signer(Proof.eip191(hash), proof, index)
  ])
