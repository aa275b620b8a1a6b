// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {WebAuthn} from "@openzeppelin/contracts/utils/cryptography/WebAuthn.sol";
import {ClientData} from "./ClientData.sol";
import {PublicKey} from "./Types.sol";

/// @notice The signature field of an operation: abi.encode of these four values.
/// @param validUntil Last second (Unix) at which the operation may be included; 0 sets no bound.
/// @param validAfter First such second; 0 sets no bound.
/// @param bundler The only tx.origin that may submit the operation; the zero address permits every EOA.
/// @param proof The signatures, in a form of {Proofs}.
struct OpSignature {
    uint48 validUntil;
    uint48 validAfter;
    address bundler;
    bytes proof;
}

/// @notice A passkey's assertion over the signed hash.
/// @param index Position of its key in the configuration's `passkeys`.
/// @param auth The assertion; its challenge is the hash, as base64url without padding in `clientDataJSON`.
struct PasskeyProof {
    uint8 index;
    WebAuthn.WebAuthnAuth auth;
}

/// @notice The ABI form of a proof: abi.encode of these two.
/// @param ecdsa Parts r || s || v, concatenated, or nothing.
/// @param passkeys Assertions.
struct MixedProof {
    bytes ecdsa;
    PasskeyProof[] passkeys;
}

/// @notice The two forms of a proof, and its parts.
/// @dev A proof is r || s || v, once or several times: 65 * k bytes, 1 <= k <= 16, in any order. Everything else is a
/// {MixedProof}. The two cannot be confused: an ABI encoding is a multiple of 32 bytes, which 65 * k is not for any k
/// below 32. All parts sign the same hash; ECDSA parts may sign its EIP-191 form.
///
/// Decoding is in place, for a fraction of what abi.decode costs. The compiler's accessors stay within
/// the calldata for every offset in hostile bytes, and bytes found there prove nothing unless they are signed.
library Proofs {
    /// @notice Length of one ECDSA part, in bytes.
    uint256 internal constant PART = 65;
    /// @notice Most ECDSA parts of one proof.
    uint256 internal constant MAX_PARTS = 16;

    /// @notice The bytes are too short to be what they should be.
    error Malformed();

    /// @notice An operation's signature, decoded in place.
    /// @param signature The bytes of the operation's field. Bytes after the encoding are ignored.
    /// @return decoded The four fields. Reverts with {Malformed} on less than their heads.
    function decodeSignature(bytes calldata signature) internal pure returns (OpSignature calldata decoded) {
        if (signature.length < 128) revert Malformed();
        assembly ("memory-safe") {
            decoded := signature.offset
        }
    }

    /// @notice A proof of the ABI form, decoded in place.
    /// @param proof The bytes of a proof for which {isEcdsa} is false.
    /// @return decoded The parts. Reverts with {Malformed} on less than their heads.
    function decodeMixed(bytes calldata proof) internal pure returns (MixedProof calldata decoded) {
        if (proof.length < 64) revert Malformed();
        assembly ("memory-safe") {
            decoded := proof.offset
        }
    }

    /// @notice Whether the proof is a concatenation of ECDSA parts, by its length.
    /// @param proof Bytes of a proof.
    /// @return Whether there are 65 * k of them, 1 <= k <= 16.
    function isEcdsa(bytes calldata proof) internal pure returns (bool) {
        return proof.length != 0 && proof.length <= PART * MAX_PARTS && proof.length % PART == 0;
    }

    /// @notice Whether `part` is r || s || v of `signer` over `hash` or its EIP-191 form.
    /// @param part 65 bytes; another length is never valid.
    /// @param signer The expected signer. The zero address signs nothing.
    /// @param hash The signed hash.
    /// @return Whether it is.
    function isBy(bytes calldata part, address signer, bytes32 hash) internal pure returns (bool) {
        return signer != address(0)
            && (recover(part, hash) == signer || recover(part, MessageHashUtils.toEthSignedMessageHash(hash)) == signer);
    }

    /// @notice The signer of `hash`. A signature has 65 bytes, low s and v 27 or 28: the library refuses the first two
    /// otherwise, the precompile the last.
    /// @param part r || s || v.
    /// @param hash The signed hash.
    /// @return signer The signer; the zero address for an invalid signature.
    function recover(bytes calldata part, bytes32 hash) internal pure returns (address signer) {
        (signer, , ) = ECDSA.tryRecoverCalldata(hash, part);
    }

    /// @notice Whether the assertion is of `key` over `hash`: type webauthn.get, user present and verified, low s.
    /// @param auth The assertion, as hostile as calldata can be.
    /// @param key The passkey, a point of P-256.
    /// @param hash The signed hash, which is the challenge.
    /// @return Whether it is. Type and challenge are members of the client data's object itself, see {ClientData}.
    function isBy(WebAuthn.WebAuthnAuth calldata auth, PublicKey memory key, bytes32 hash)
        internal
        view
        returns (bool)
    {
        // In front: the library reads memory at an index before it compares it with the length, and runs out of gas.
        return ClientData.areMembers(auth.clientDataJSON, auth.typeIndex, auth.challengeIndex)
            && WebAuthn.verify(abi.encodePacked(hash), auth, key.x, key.y);
    }
}
