// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IAggregator, PackedUserOperation} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {Conditions} from "../Conditions.sol";
import {OpSignature, Proofs} from "../Proofs.sol";
import {UserOperationV06} from "../Types.sol";

/// @dev Functions of the calling EntryPoint that the aggregator uses.
interface IHashes {
    function getUserOpHash(PackedUserOperation calldata userOp) external view returns (bytes32);
    function getUserOpHash(UserOperationV06 calldata userOp) external view returns (bytes32);
}

/// @dev Function of a wallet that the aggregator uses.
interface IProven {
    function isProof(bytes32 hash, bytes calldata proof) external view returns (bool);
}

/// @title The smallest aggregator, for development chains and tests
/// @notice It takes the proofs out of the operations of {AggregatedWallet}s and verifies them together: the aggregated
/// signature is abi.encode(bytes[] proofs), one per operation. A real one would hold one BLS signature there.
/// @dev A bundler calls from the EntryPoint's address, since the aggregator asks its caller for operation hashes:
/// 1. `aggregateSignatures` of the signed operations is the group's signature;
/// 2. `validateUserOpSignature` of each verifies it, and returns the operation's signature in the bundle (a sponsor's
///    signature follows it as usual);
/// 3. `handleAggregatedOps` with [{userOps, aggregator, signature}], which calls `validateSignatures`.
contract ProofAggregator is IAggregator {
    /// @notice An operation's proof is not by its wallet's validators.
    error WrongProof(address wallet);
    /// @notice There are not as many proofs as operations.
    error WrongCount(uint256 proofs, uint256 operations);

    // ------------------------------------------------------------------------------- v0.7 and v0.8

    /// @inheritdoc IAggregator
    function validateUserOpSignature(PackedUserOperation calldata userOp) external view returns (bytes memory) {
        OpSignature calldata signed = Proofs.decodeSignature(userOp.signature);
        _check(userOp.sender, IHashes(msg.sender).getUserOpHash(userOp), signed, signed.proof);
        return _withoutProof(signed);
    }

    /// @inheritdoc IAggregator
    function aggregateSignatures(PackedUserOperation[] calldata userOps) external pure returns (bytes memory) {
        bytes[] memory proofs = new bytes[](userOps.length);
        for (uint256 i = 0; i < userOps.length; ++i) {
            proofs[i] = Proofs.decodeSignature(userOps[i].signature).proof;
        }
        return abi.encode(proofs);
    }

    /// @inheritdoc IAggregator
    function validateSignatures(PackedUserOperation[] calldata userOps, bytes calldata signature) external view {
        bytes[] memory proofs = _proofs(signature, userOps.length);
        for (uint256 i = 0; i < userOps.length; ++i) {
            OpSignature calldata signed = Proofs.decodeSignature(userOps[i].signature);
            _check(userOps[i].sender, IHashes(msg.sender).getUserOpHash(userOps[i]), signed, proofs[i]);
        }
    }

    // ---------------------------------------------------------------------------------------- v0.6

    /// @notice {validateUserOpSignature} of v0.6.
    function validateUserOpSignature(UserOperationV06 calldata userOp) external view returns (bytes memory) {
        OpSignature calldata signed = Proofs.decodeSignature(userOp.signature);
        _check(userOp.sender, IHashes(msg.sender).getUserOpHash(userOp), signed, signed.proof);
        return _withoutProof(signed);
    }

    /// @notice {aggregateSignatures} of v0.6.
    function aggregateSignatures(UserOperationV06[] calldata userOps) external pure returns (bytes memory) {
        bytes[] memory proofs = new bytes[](userOps.length);
        for (uint256 i = 0; i < userOps.length; ++i) {
            proofs[i] = Proofs.decodeSignature(userOps[i].signature).proof;
        }
        return abi.encode(proofs);
    }

    /// @notice {validateSignatures} of v0.6.
    function validateSignatures(UserOperationV06[] calldata userOps, bytes calldata signature) external view {
        bytes[] memory proofs = _proofs(signature, userOps.length);
        for (uint256 i = 0; i < userOps.length; ++i) {
            OpSignature calldata signed = Proofs.decodeSignature(userOps[i].signature);
            _check(userOps[i].sender, IHashes(msg.sender).getUserOpHash(userOps[i]), signed, proofs[i]);
        }
    }

    // --------------------------------------------------------------------------------------- shared

    function _proofs(bytes calldata signature, uint256 operations) private pure returns (bytes[] memory proofs) {
        proofs = abi.decode(signature, (bytes[]));
        if (proofs.length != operations) revert WrongCount(proofs.length, operations);
    }

    /// @dev The proof is over the signing hash, as for a plain {Wallet}.
    function _check(address wallet, bytes32 userOpHash, OpSignature calldata signed, bytes memory proof) private view {
        bytes32 hash = Conditions.signingHash(userOpHash, signed.validUntil, signed.validAfter, signed.bundler);
        if (!IProven(wallet).isProof(hash, proof)) revert WrongProof(wallet);
    }

    function _withoutProof(OpSignature calldata signed) private pure returns (bytes memory) {
        return abi.encode(signed.validUntil, signed.validAfter, signed.bundler, bytes(""));
    }
}
