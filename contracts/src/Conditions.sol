// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice Conditions of an operation's signature: a window of time, and the EOA that may submit it.
/// @dev The bundler is compared with tx.origin. Without a bundler an observer may copy an operation from
/// a pending bundle into another transaction, make its call fail there and burn its nonce at the wallet's cost.
library Conditions {
    /// @notice The authorizer of ERC-4337 validation data that means: signature wrong.
    uint256 internal constant FAILED = 1;

    bytes32 private constant TYPE_HASH =
        keccak256("Conditions(bytes32 userOpHash,uint48 validUntil,uint48 validAfter,address bundler)");

    /// @dev A constant: userOpHash binds chain, EntryPoint and wallet already.
    bytes32 private constant DOMAIN_SEPARATOR = keccak256(
        abi.encode(keccak256("EIP712Domain(string name,string version)"), keccak256("castellan"), keccak256("1"))
    );

    /// @notice The signing hash: `userOpHash` without conditions, otherwise the EIP-712 hash of the conditions.
    function signingHash(bytes32 userOpHash, uint48 validUntil, uint48 validAfter, address bundler)
        internal
        pure
        returns (bytes32)
    {
        if (validUntil == 0 && validAfter == 0 && bundler == address(0)) return userOpHash;
        bytes32 structHash = keccak256(abi.encode(TYPE_HASH, userOpHash, validUntil, validAfter, bundler));
        return keccak256(abi.encodePacked(hex"1901", DOMAIN_SEPARATOR, structHash));
    }

    /// @notice ERC-4337 validation data of a window in Unix seconds; 0 sets no bound.
    function window(uint48 validUntil, uint48 validAfter) internal pure returns (uint256) {
        return (uint256(validAfter) << 208) | (uint256(validUntil) << 160);
    }
}
