// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {TransientSlot} from "@openzeppelin/contracts/utils/TransientSlot.sol";

/// @title OperationLedger
/// @notice Lets one operation depend on another of the same transaction: the first one's batch is
/// [its call, record(key)], the second one's [requireRecorded(first wallet, key), its call].
/// With key = keccak256(abi.encode(entryPoint, first wallet, first nonce)) the key names one operation and no other.
/// @dev A record lives in transient storage (EIP-1153): it is gone when the transaction ends, and it is
/// rolled back with the operation that wrote it. Records are kept per caller: no contract can record for another wallet.
contract OperationLedger {
    using TransientSlot for bytes32;
    using TransientSlot for TransientSlot.BooleanSlot;

    /// @notice The operation of that key has not succeeded earlier in this transaction.
    /// @param key The required key.
    error DependencyFailed(bytes32 key);

    /// @notice Records until the end of this transaction that the caller's operation of this key has succeeded. Any
    /// address may call it, and records only for itself.
    /// @param key The operation: keccak256(abi.encode(entryPoint, wallet, nonce)).
    function record(bytes32 key) external {
        _slot(msg.sender, key).asBoolean().tstore(true);
    }

    /// @notice Reverts with {DependencyFailed} unless a wallet has recorded a key in this transaction. Callable by any
    /// address.
    /// @param wallet The wallet of the required record.
    /// @param key The operation: keccak256(abi.encode(entryPoint, wallet, nonce)).
    function requireRecorded(address wallet, bytes32 key) external view {
        if (!_slot(wallet, key).asBoolean().tload()) revert DependencyFailed(key);
    }

    function _slot(address wallet, bytes32 key) private pure returns (bytes32) {
        return keccak256(abi.encode(wallet, key));
    }
}
