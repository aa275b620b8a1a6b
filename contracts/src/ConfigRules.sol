// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {P256} from "@openzeppelin/contracts/utils/cryptography/P256.sol";
import {Config, PublicKey} from "./Types.sol";

/// @notice Rules of every installed configuration, at creation, rotation and recovery.
/// @dev Strictly ascending lists make every validator unique: the same key can never count twice.
library ConfigRules {
    uint8 internal constant ECDSA = 1;
    uint8 internal constant ECDSA_PASSKEY = 2;
    uint8 internal constant MULTISIG = 3;
    uint8 internal constant MULTISIG_PASSKEY = 4;
    uint8 internal constant PASSKEY = 5;

    /// @notice Most owners, and most passkeys, of one wallet.
    uint256 internal constant MAX_VALIDATORS = 16;

    /// @notice The custody is not a value from 1 to 5.
    /// @param custody The custody that was given.
    error InvalidCustody(uint8 custody);
    /// @notice The custody does not have this number of owners.
    /// @param count The number of owners that was given.
    error InvalidOwnerCount(uint256 count);
    /// @notice The custody does not have this number of passkeys.
    /// @param count The number of passkeys that was given.
    error InvalidPasskeyCount(uint256 count);
    /// @notice The threshold is zero, above the number of validators, or not 1 where the custody demands 1.
    /// @param threshold The threshold that was given.
    error InvalidThreshold(uint8 threshold);
    /// @notice The owner is the zero address, or not greater than its predecessor.
    /// @param owner The first such owner.
    error InvalidOwner(address owner);
    /// @notice The passkey is not a point of P-256, or not greater than its predecessor.
    /// @param x Its first coordinate, 32 bytes, big-endian.
    /// @param y Its second one.
    error InvalidPasskey(bytes32 x, bytes32 y);

    /// @notice Reverts unless `config` obeys every rule.
    function check(Config calldata config) internal pure {
        uint8 custody = config.custody;
        uint256 owners = config.owners.length;
        uint256 passkeys = config.passkeys.length;
        if (custody < ECDSA || custody > PASSKEY) revert InvalidCustody(custody);

        bool single = custody == ECDSA || custody == ECDSA_PASSKEY;
        uint256 leastOwners = custody == PASSKEY ? 0 : 1;
        uint256 mostOwners = custody == PASSKEY ? 0 : single ? 1 : MAX_VALIDATORS;
        if (owners < leastOwners || owners > mostOwners) revert InvalidOwnerCount(owners);

        bool keyless = custody == ECDSA || custody == MULTISIG;
        if (keyless ? passkeys != 0 : passkeys == 0 || passkeys > MAX_VALIDATORS) revert InvalidPasskeyCount(passkeys);

        uint256 most = custody == MULTISIG || custody == MULTISIG_PASSKEY ? owners + passkeys : 1;
        if (config.threshold == 0 || config.threshold > most) revert InvalidThreshold(config.threshold);

        address previous = address(0);
        for (uint256 i = 0; i < owners; ++i) {
            address owner = config.owners[i];
            if (owner <= previous) revert InvalidOwner(owner);
            previous = owner;
        }
        for (uint256 i = 0; i < passkeys; ++i) {
            PublicKey calldata key = config.passkeys[i];
            if (i > 0 && !_ascending(config.passkeys[i - 1], key)) revert InvalidPasskey(key.x, key.y);
            if (!P256.isValidPublicKey(key.x, key.y)) revert InvalidPasskey(key.x, key.y);
        }
    }

    function _ascending(PublicKey calldata a, PublicKey calldata b) private pure returns (bool) {
        return a.x < b.x || (a.x == b.x && a.y < b.y);
    }
}
