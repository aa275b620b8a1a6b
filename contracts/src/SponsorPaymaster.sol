// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {IEntryPointStake, PackedUserOperation} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {Conditions} from "./Conditions.sol";
import {Proofs} from "./Proofs.sol";
import {UserOperationV06} from "./Types.sol";

/// @title SponsorPaymaster
/// @notice Pays for the operations that its sponsor has signed, out of its deposits at EntryPoint v0.6, v0.7 and v0.8.
/// @dev paymasterAndData is this address (20 bytes), from v0.7 on the two gas limits (16 each), validUntil (6) and
/// validAfter (6), and nothing more. It is part of userOpHash, so the sponsor signs that alone: every field, limit and
/// time, the wallet, the chain and the EntryPoint are in it. The sponsor's r || s || v is the last 65 bytes of the
/// operation's signature, behind what the wallet reads: the wallet's owner signs nothing that depends on it.
///
/// The nonce makes a sponsorship good once, wherever it is submitted. It says nothing of who submits.
contract SponsorPaymaster is Ownable2Step, EIP712 {
    bytes32 private constant TYPE_HASH = keccak256("Sponsorship(bytes32 userOpHash)");

    /// @dev Bytes of paymasterAndData in front of the window, and in all.
    uint256 private constant WINDOW = 12;
    uint256 private constant FIXED_V06 = 20;
    uint256 private constant FIXED = 52;

    address private immutable ENTRY_POINT_V06;
    address private immutable ENTRY_POINT_V07;
    address private immutable ENTRY_POINT_V08;

    /// @notice Who signs sponsorships.
    address public sponsor;

    /// @notice Operations are sponsored by another key from now on.
    event SponsorChanged(address indexed previous, address indexed current);

    /// @notice The zero address cannot be sponsor.
    error InvalidSponsor();
    /// @notice The address is none of the accepted EntryPoints, or not the one of this version.
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
    /// @return context Empty: there is no postOp.
    /// @return validationData The window, and 1 as the authorizer unless the sponsor has signed. Never reverts on a
    /// signature, so that a bundler is told AA34.
    function validatePaymasterUserOp(PackedUserOperation calldata userOp, bytes32 userOpHash, uint256)
        external
        view
        returns (bytes memory context, uint256 validationData)
    {
        if (msg.sender != ENTRY_POINT_V07 && msg.sender != ENTRY_POINT_V08) revert UnknownEntryPoint(msg.sender);
        return (context, _validate(userOp.paymasterAndData, FIXED, userOp.signature, userOpHash));
    }

    /// @notice {validatePaymasterUserOp} of EntryPoint v0.6, and of no other caller.
    function validatePaymasterUserOp(UserOperationV06 calldata userOp, bytes32 userOpHash, uint256)
        external
        view
        returns (bytes memory context, uint256 validationData)
    {
        if (msg.sender != ENTRY_POINT_V06) revert UnknownEntryPoint(msg.sender);
        return (context, _validate(userOp.paymasterAndData, FIXED_V06, userOp.signature, userOpHash));
    }

    function _validate(bytes calldata data, uint256 fixedBytes, bytes calldata signature, bytes32 userOpHash)
        private
        view
        returns (uint256)
    {
        if (data.length != fixedBytes + WINDOW || signature.length < Proofs.PART) return Conditions.FAILED;
        uint48 validUntil = uint48(bytes6(data[fixedBytes:]));
        uint48 validAfter = uint48(bytes6(data[fixedBytes + 6:]));
        bytes32 digest = _hashTypedDataV4(keccak256(abi.encode(TYPE_HASH, userOpHash)));
        address signer = Proofs.recover(signature[signature.length - Proofs.PART:], digest);
        uint256 window = Conditions.window(validUntil, validAfter);
        // The sponsor is never the zero address, which is what an invalid signature recovers to.
        return signer == sponsor ? window : window | Conditions.FAILED;
    }

    // ------------------------------------------------------------------------------------------- owner

    /// @notice Replaces the sponsor. What the previous one has signed is void at once.
    function setSponsor(address sponsor_) external onlyOwner {
        _setSponsor(sponsor_);
    }

    function _setSponsor(address sponsor_) private {
        if (sponsor_ == address(0)) revert InvalidSponsor();
        emit SponsorChanged(sponsor, sponsor_);
        sponsor = sponsor_;
    }

    /// @notice Adds the value to the deposit at an EntryPoint. Anybody may, here or with the EntryPoint's `depositTo`.
    function deposit(address entryPoint) external payable {
        _entryPoint(entryPoint).depositTo{value: msg.value}(address(this));
    }

    /// @notice Takes `amount` wei out of the deposit at an EntryPoint.
    function withdrawTo(address entryPoint, address payable to, uint256 amount) external onlyOwner {
        _entryPoint(entryPoint).withdrawTo(to, amount);
    }

    /// @notice Adds the value to the stake at an EntryPoint, which public bundlers ask for.
    function addStake(address entryPoint, uint32 unstakeDelay) external payable onlyOwner {
        _entryPoint(entryPoint).addStake{value: msg.value}(unstakeDelay);
    }

    /// @notice Begins the delay after which the stake at an EntryPoint can be taken out.
    function unlockStake(address entryPoint) external onlyOwner {
        _entryPoint(entryPoint).unlockStake();
    }

    /// @notice Takes out the unlocked stake at an EntryPoint.
    function withdrawStake(address entryPoint, address payable to) external onlyOwner {
        _entryPoint(entryPoint).withdrawStake(to);
    }

    function _entryPoint(address entryPoint) private view returns (IEntryPointStake) {
        if (entryPoint != ENTRY_POINT_V06 && entryPoint != ENTRY_POINT_V07 && entryPoint != ENTRY_POINT_V08)
            revert UnknownEntryPoint(entryPoint);
        return IEntryPointStake(entryPoint);
    }
}
