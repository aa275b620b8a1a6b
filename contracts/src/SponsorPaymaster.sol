// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {IEntryPointStake, PackedUserOperation} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Conditions} from "./Conditions.sol";
import {OwnedInTwoSteps} from "./OwnedInTwoSteps.sol";
import {Proofs} from "./Proofs.sol";
import {UserOperationV06} from "./Types.sol";

/// @title SponsorPaymaster
/// @notice Pays for the operations that its sponsor has signed, out of its deposits at EntryPoint v0.6, v0.7 and v0.8.
/// @dev paymasterAndData is this address (20 bytes), from v0.7 on the two gas limits (16 each), validUntil (6) and
/// validAfter (6), and nothing more. It is part of userOpHash, so every field, limit and time, the wallet, the chain
/// and the EntryPoint are in what the sponsor signs. The sponsor's r || s || v is the last 65 bytes of the operation's
/// signature, behind what the wallet reads: the wallet's owner signs nothing that depends on it.
///
/// The nonce makes a sponsorship good once. The sponsor signs as well who submits: the EOA of the transaction
/// (tx.origin). Without it an observer of the 65 bytes in a pending bundle could submit the operation first, and be
/// paid for it from the deposit.
///
/// Bundlers that submit from EOAs of their own need a sponsorship that names no submitter: one byte more, 0x01, at the
/// end of paymasterAndData, and the zero address in what is signed. This form does not read tx.origin, which their
/// mempools forbid (ERC-7562, OP-011). The byte is part of userOpHash, so that no form converts into the other.
contract SponsorPaymaster is OwnedInTwoSteps, EIP712 {
    bytes32 private constant TYPE_HASH = keccak256("Sponsorship(bytes32 userOpHash,address bundler)");

    /// @dev Bytes of the window in paymasterAndData, and of what is in front of it.
    uint256 private constant WINDOW = 12;
    uint256 private constant FIXED_V06 = 20;
    uint256 private constant FIXED = 52;

    /// @dev Behind the window when no submitter is named.
    bytes1 private constant UNBOUND = 0x01;

    address private immutable ENTRY_POINT_V06;
    address private immutable ENTRY_POINT_V07;
    address private immutable ENTRY_POINT_V08;

    /// @notice The signer of sponsorships. Callable by any address.
    /// @return Its address; never the zero address.
    address public sponsor;

    /// @notice Operations are sponsored by another key from now on.
    /// @param previous The former signer of sponsorships; the zero address in the constructor.
    /// @param current The new one.
    event SponsorChanged(address indexed previous, address indexed current);

    /// @notice The zero address cannot be sponsor.
    error InvalidSponsor();
    /// @notice The address is not an accepted EntryPoint, or not the EntryPoint of this version.
    /// @param entryPoint The address that was given, or that called.
    error UnknownEntryPoint(address entryPoint);

    /// @param sponsor_ First signer of sponsorships.
    /// @param owner_ May replace the sponsor and take out deposits and stakes.
    /// @param entryPointV06 The only EntryPoint that may validate operations of v0.6.
    /// @param entryPointV07 One of the two that may validate packed operations.
    /// @param entryPointV08 The other one.
    constructor(
        address sponsor_,
        address owner_,
        address entryPointV06,
        address entryPointV07,
        address entryPointV08
    ) Ownable(owner_) EIP712("castellan", "1") {
        ENTRY_POINT_V06 = entryPointV06;
        ENTRY_POINT_V07 = entryPointV07;
        ENTRY_POINT_V08 = entryPointV08;
        _setSponsor(sponsor_);
    }

    // -------------------------------------------------------------------------------------- validation

    /// @notice Whether this contract pays for an operation of EntryPoint v0.7 or v0.8. Of no other caller.
    /// @param userOp The operation.
    /// @param userOpHash Its hash, guaranteed by the EntryPoint.
    /// @return context Empty: there is no postOp.
    /// @return validationData The window, and 1 as the authorizer unless the sponsor has signed. Never reverts on a
    /// signature, so that a bundler receives AA34.
    function validatePaymasterUserOp(PackedUserOperation calldata userOp, bytes32 userOpHash, uint256)
        external
        view
        returns (bytes memory context, uint256 validationData)
    {
        if (msg.sender != ENTRY_POINT_V07 && msg.sender != ENTRY_POINT_V08) revert UnknownEntryPoint(msg.sender);
        return (context, _validate(userOp.paymasterAndData, FIXED, userOp.signature, userOpHash));
    }

    /// @notice {validatePaymasterUserOp} of EntryPoint v0.6, and of no other caller.
    /// @param userOp The operation.
    /// @param userOpHash Its hash, guaranteed by the EntryPoint.
    /// @return context Empty: there is no postOp.
    /// @return validationData The window, and 1 as the authorizer unless the sponsor has signed.
    function validatePaymasterUserOp(UserOperationV06 calldata userOp, bytes32 userOpHash, uint256)
        external
        view
        returns (bytes memory context, uint256 validationData)
    {
        if (msg.sender != ENTRY_POINT_V06) revert UnknownEntryPoint(msg.sender);
        return (context, _validate(userOp.paymasterAndData, FIXED_V06, userOp.signature, userOpHash));
    }

    /// @dev ERC-4337 validation data of an operation whose paymasterAndData has `fixedBytes` in front of the window.
    function _validate(bytes calldata data, uint256 fixedBytes, bytes calldata signature, bytes32 userOpHash)
        private
        view
        returns (uint256)
    {
        address bundler;
        uint256 end = fixedBytes + WINDOW;
        if (data.length == end) bundler = tx.origin;
        else if (data.length != end + 1 || data[end] != UNBOUND) return Conditions.FAILED;
        if (signature.length < Proofs.PART) return Conditions.FAILED;
        uint48 validUntil = uint48(bytes6(data[fixedBytes:]));
        uint48 validAfter = uint48(bytes6(data[fixedBytes + 6:]));
        bytes32 digest = _hashTypedDataV4(keccak256(abi.encode(TYPE_HASH, userOpHash, bundler)));
        address signer = Proofs.recover(signature[signature.length - Proofs.PART:], digest);
        uint256 window = Conditions.window(validUntil, validAfter);
        // The sponsor is never the zero address, which is what an invalid signature recovers to.
        return signer == sponsor ? window : window | Conditions.FAILED;
    }

    // ------------------------------------------------------------------------------------------- owner

    /// @notice Replaces the sponsor. Signatures of the previous sponsor become void. Only for the owner.
    /// @param sponsor_ The new signer of sponsorships; not the zero address.
    function setSponsor(address sponsor_) external onlyOwner {
        _setSponsor(sponsor_);
    }

    function _setSponsor(address sponsor_) private {
        if (sponsor_ == address(0)) revert InvalidSponsor();
        emit SponsorChanged(sponsor, sponsor_);
        sponsor = sponsor_;
    }

    /// @notice Adds the value to the deposit at an EntryPoint. Callable by any address, like the EntryPoint's `depositTo`.
    /// @param entryPoint One of the three accepted EntryPoints.
    function deposit(address entryPoint) external payable {
        _entryPoint(entryPoint).depositTo{value: msg.value}(address(this));
    }

    /// @notice Takes wei out of the deposit at an EntryPoint. Only for the owner.
    /// @param entryPoint One of the three accepted EntryPoints.
    /// @param to The recipient.
    /// @param amount Wei.
    function withdrawTo(address entryPoint, address payable to, uint256 amount) external onlyOwner {
        _entryPoint(entryPoint).withdrawTo(to, amount);
    }

    /// @notice Adds the value to the stake at an EntryPoint, which public bundlers ask for. Only for the owner.
    /// @param entryPoint One of the three accepted EntryPoints.
    /// @param unstakeDelay Seconds between {unlockStake} and {withdrawStake}.
    function addStake(address entryPoint, uint32 unstakeDelay) external payable onlyOwner {
        _entryPoint(entryPoint).addStake{value: msg.value}(unstakeDelay);
    }

    /// @notice Begins the delay after which the stake at an EntryPoint can be taken out. Only for the owner.
    /// @param entryPoint One of the three accepted EntryPoints.
    function unlockStake(address entryPoint) external onlyOwner {
        _entryPoint(entryPoint).unlockStake();
    }

    /// @notice Takes out the unlocked stake at an EntryPoint. Only for the owner.
    /// @param entryPoint One of the three accepted EntryPoints.
    /// @param to The recipient.
    function withdrawStake(address entryPoint, address payable to) external onlyOwner {
        _entryPoint(entryPoint).withdrawStake(to);
    }

    function _entryPoint(address entryPoint) private view returns (IEntryPointStake) {
        if (entryPoint != ENTRY_POINT_V06 && entryPoint != ENTRY_POINT_V07 && entryPoint != ENTRY_POINT_V08)
            revert UnknownEntryPoint(entryPoint);
        return IEntryPointStake(entryPoint);
    }
}
