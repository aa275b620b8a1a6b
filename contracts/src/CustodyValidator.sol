// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {ConfigRules} from "./ConfigRules.sol";
import {MixedProof, PasskeyProof, Proofs} from "./Proofs.sol";
import {Config, PublicKey} from "./Types.sol";

/// @title CustodyValidator
/// @notice Verifies the proofs of every custody, in the forms of {Proofs}, against a configuration. Holds no state and
/// trusts its caller for the configuration. A wallet passes its own; any address may call it for free.
contract CustodyValidator {
    /// @notice Whether `proof` is by at least `config.threshold` distinct validators of `config` over `hash`.
    /// @dev Every part has to be valid and by a distinct validator; an invalid part makes the whole proof
    /// worthless. The function verifies all parts nevertheless, so that a dummy of the real form measures the
    /// cost of a real proof. Callable by any address.
    /// @param config The validators. A configuration with more owners or passkeys than a wallet can have proves nothing.
    /// @param hash The signed hash.
    /// @param proof The signatures, in a form of {Proofs}. Reverts with {Malformed} on another form.
    /// @return Whether the threshold is met.
    function verify(Config calldata config, bytes32 hash, bytes calldata proof) external view returns (bool) {
        address[] calldata owners = config.owners;
        PublicKey[] calldata passkeys = config.passkeys;
        // Each validator has one bit: a bit beyond the word would record nothing.
        if (owners.length > ConfigRules.MAX_VALIDATORS || passkeys.length > ConfigRules.MAX_VALIDATORS) return false;

        uint256 signers;
        if (Proofs.isEcdsa(proof)) {
            if (!_verifyOwners(owners, hash, proof)) return false;
            signers = proof.length / Proofs.PART;
        } else {
            bool valid;
            (valid, signers) = _verifyMixed(owners, passkeys, hash, Proofs.decodeMixed(proof));
            if (!valid) return false;
        }
        // A configuration that was never installed has threshold zero, which no number of signers meets.
        uint256 threshold = config.threshold;
        return threshold > 0 && signers >= threshold;
    }

    /// @dev Whether every part is by a distinct validator, and the number of parts.
    function _verifyMixed(
        address[] calldata owners,
        PublicKey[] calldata passkeys,
        bytes32 hash,
        MixedProof calldata mixed
    ) private view returns (bool valid, uint256 signers) {
        bytes calldata ecdsa = mixed.ecdsa;
        PasskeyProof[] calldata assertions = mixed.passkeys;
        valid = _verifyOwners(owners, hash, ecdsa);
        if (!_verifyPasskeys(passkeys, hash, assertions)) valid = false;
        signers = ecdsa.length / Proofs.PART + assertions.length;
    }

    /// @dev Whether `parts` is a concatenation of signatures by distinct owners; of none, if it is empty.
    function _verifyOwners(address[] calldata owners, bytes32 hash, bytes calldata parts)
        private
        pure
        returns (bool valid)
    {
        if (parts.length == 0) return true;
        if (!Proofs.isEcdsa(parts)) return false;
        valid = true;
        bytes32 personal = MessageHashUtils.toEthSignedMessageHash(hash);
        uint256 used;
        for (uint256 offset = 0; offset < parts.length; offset += Proofs.PART) {
            bytes calldata part = parts[offset:offset + Proofs.PART];
            uint256 index = _indexOf(owners, Proofs.recover(part, hash));
            if (index == owners.length) index = _indexOf(owners, Proofs.recover(part, personal));
            if (index == owners.length || used & (1 << index) != 0) valid = false;
            used |= 1 << index;
        }
    }

    /// @dev Position in `owners`, or their number for another address. The zero address is never an owner.
    function _indexOf(address[] calldata owners, address signer) private pure returns (uint256 index) {
        if (signer == address(0)) return owners.length;
        for (index = 0; index < owners.length; ++index) {
            if (owners[index] == signer) return index;
        }
    }

    /// @dev Whether `assertions` are by distinct passkeys; by none, if there are none.
    function _verifyPasskeys(PublicKey[] calldata passkeys, bytes32 hash, PasskeyProof[] calldata assertions)
        private
        view
        returns (bool valid)
    {
        valid = true;
        uint256 used;
        for (uint256 i = 0; i < assertions.length; ++i) {
            PasskeyProof calldata assertion = assertions[i];
            uint256 index = assertion.index;
            if (index >= passkeys.length || used & (1 << index) != 0) return false;
            used |= 1 << index;
            if (!Proofs.isBy(assertion.auth, passkeys[index], hash)) valid = false;
        }
    }
}
