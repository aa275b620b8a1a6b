// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {WebAuthn} from "@openzeppelin/contracts/utils/cryptography/WebAuthn.sol";
import {Config, PublicKey} from "./Types.sol";

/// @notice A passkey's assertion over the signed hash.
/// @param index Position of its key in the configuration's `passkeys`.
/// @param auth The assertion; its challenge is the hash, as base64url without padding in `clientDataJSON`.
struct PasskeyProof {
    uint8 index;
    WebAuthn.WebAuthnAuth auth;
}

/// @title CustodyValidator
/// @notice Verifies the proofs of every custody against a configuration. Holds no state and trusts its caller for
/// the configuration: a wallet passes its own, anybody may ask for free.
/// @dev A proof is r || s || v, once or several times: 65 * k bytes, 1 <= k <= 16, in any order. Everything else
/// is abi.encode(bytes ecdsa, PasskeyProof[] passkeys), where `ecdsa` is empty or such a concatenation. All parts
/// sign the same hash. The two forms cannot be confused: an ABI encoding is a multiple of 32 bytes, which
/// 65 * k is not for any k below 32.
contract CustodyValidator {
    /// @notice Length of one ECDSA part, in bytes.
    uint256 private constant PART = 65;
    /// @notice Most ECDSA parts of one proof.
    uint256 private constant MAX_PARTS = 16;

    /// @notice Whether `proof` is by at least `config.threshold` distinct validators of `config` over `hash`.
    /// @dev Every part has to be valid and by a validator that no other part is by; one that is not makes the
    /// proof worthless, whatever the others are. Reverts on a proof that is of neither form.
    function verify(Config calldata config, bytes32 hash, bytes calldata proof) external view returns (bool) {
        bytes memory ecdsa;
        PasskeyProof[] memory assertions;
        if (proof.length > 0 && proof.length <= PART * MAX_PARTS && proof.length % PART == 0) ecdsa = proof;
        else (ecdsa, assertions) = abi.decode(proof, (bytes, PasskeyProof[]));

        bool ownersValid = _verifyOwners(config.owners, hash, ecdsa);
        bool passkeysValid = _verifyPasskeys(config.passkeys, hash, assertions);
        uint256 signers = ecdsa.length / PART + assertions.length;
        // A configuration that was never installed has threshold zero, which no number of signers meets.
        return ownersValid && passkeysValid && config.threshold > 0 && signers >= config.threshold;
    }

    /// @dev Position in `owners` of the signer of `hash`, or their number when it is none of them. A signature has
    /// low s and v 27 or 28: ECDSA refuses the first, the precompile the second.
    function _signerIndex(address[] calldata owners, bytes32 hash, uint8 v, bytes32 r, bytes32 s)
        private
        pure
        returns (uint256 index)
    {
        (address signer, ECDSA.RecoverError failure, ) = ECDSA.tryRecover(hash, v, r, s);
        if (failure != ECDSA.RecoverError.NoError) return owners.length;
        for (index = 0; index < owners.length; ++index) {
            if (owners[index] == signer) return index;
        }
    }

    /// @dev Whether `parts` is a concatenation of at most {MAX_PARTS} signatures by distinct owners.
    function _verifyOwners(address[] calldata owners, bytes32 hash, bytes memory parts) private pure returns (bool valid) {
        if (parts.length > PART * MAX_PARTS || parts.length % PART != 0) return false;
        bytes32 personal = MessageHashUtils.toEthSignedMessageHash(hash);
        uint256 used;
        valid = true;
        for (uint256 offset = 0; offset < parts.length; offset += PART) {
            bytes32 r;
            bytes32 s;
            uint8 v;
            assembly ("memory-safe") {
                let part := add(add(parts, 32), offset)
                r := mload(part)
                s := mload(add(part, 32))
                v := byte(0, mload(add(part, 64)))
            }
            uint256 index = _signerIndex(owners, hash, v, r, s);
            if (index == owners.length) index = _signerIndex(owners, personal, v, r, s);
            if (index == owners.length || used & (1 << index) != 0) valid = false;
            used |= 1 << index;
        }
    }

    /// @dev Whether `assertions` are by distinct passkeys. User presence and verification are demanded, s is low.
    function _verifyPasskeys(PublicKey[] calldata passkeys, bytes32 hash, PasskeyProof[] memory assertions)
        private
        view
        returns (bool valid)
    {
        if (assertions.length > passkeys.length) return false;
        bytes memory challenge = abi.encodePacked(hash);
        uint256 used;
        valid = true;
        for (uint256 i = 0; i < assertions.length; ++i) {
            uint256 index = assertions[i].index;
            if (index >= passkeys.length || used & (1 << index) != 0) return false;
            used |= 1 << index;
            PublicKey calldata key = passkeys[index];
            if (!WebAuthn.verify(challenge, assertions[i].auth, key.x, key.y)) valid = false;
        }
    }
}
