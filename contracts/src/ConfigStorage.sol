// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Config, PublicKey} from "./Types.sol";

/// @notice Storage of a wallet's configuration.
/// @dev ERC-7201 namespace `castellan.wallet`. One owner, whatever the custody, costs a single slot.
library ConfigStorage {
    /// @dev Slot 0: everything but the further owners and the passkeys. Slots 1 to 15: owners 2 to 16. Slots 16 to 47:
    /// passkeys, x then y. Slots beyond the counts may hold what an earlier configuration left there.
    /// @custom:storage-location erc7201:castellan.wallet
    struct Layout {
        uint8 custody;
        uint8 threshold;
        uint8 ownerCount;
        uint8 passkeyCount;
        uint64 configNonce;
        address firstOwner;
        address[15] moreOwners;
        PublicKey[16] passkeys;
    }

    /// @dev keccak256(abi.encode(uint256(keccak256("castellan.wallet")) - 1)) & ~bytes32(uint256(0xff))
    bytes32 internal constant LOCATION = 0x31197fd748762ba58ff2e3af1170aadf2237cbf9f2f07097cae29c2008864300;

    /// @notice The wallet's configuration in storage.
    /// @return stored The layout at {LOCATION}.
    function get() internal pure returns (Layout storage stored) {
        assembly {
            stored.slot := LOCATION
        }
    }

    /// @notice Slot 0 as it is, for validation: every field that decides about one signature, in a single read.
    /// @param stored The wallet's configuration.
    /// @return word The fields in the order of {Layout}, the first one in the lowest byte.
    function head(Layout storage stored) internal view returns (uint256 word) {
        assembly ("memory-safe") {
            word := sload(stored.slot)
        }
    }

    /// @notice Number of earlier configurations of the wallet. The top 64 bits of every nonce and the version of the
    /// messages' domain contain it.
    /// @param stored The wallet's configuration.
    /// @return configNonce - 1; 0 before the first configuration too.
    function epoch(Layout storage stored) internal view returns (uint64) {
        uint64 configNonce = stored.configNonce;
        return configNonce == 0 ? 0 : configNonce - 1;
    }

    /// @notice Makes `initialize` impossible; there is no way back.
    /// @param stored The configuration of the implementation itself.
    function lock(Layout storage stored) internal {
        stored.configNonce = type(uint64).max;
    }

    /// @notice Replaces the whole configuration. Its rules and the custody are the caller's to check.
    /// @param stored The wallet's configuration.
    /// @param config The new configuration.
    /// @return configNonce Number of configurations installed so far, including this one.
    function install(Layout storage stored, Config calldata config) internal returns (uint64 configNonce) {
        uint256 owners = config.owners.length;
        uint256 passkeys = config.passkeys.length;
        configNonce = stored.configNonce + 1;
        stored.custody = config.custody;
        stored.threshold = config.threshold;
        stored.ownerCount = uint8(owners);
        stored.passkeyCount = uint8(passkeys);
        stored.configNonce = configNonce;
        stored.firstOwner = owners > 0 ? config.owners[0] : address(0);
        for (uint256 i = 1; i < owners; ++i) stored.moreOwners[i - 1] = config.owners[i];
        for (uint256 i = 0; i < passkeys; ++i) stored.passkeys[i] = config.passkeys[i];
    }

    /// @notice The configuration as it was installed.
    /// @param stored The wallet's configuration.
    /// @return config The configuration in memory; all zero before the first.
    function load(Layout storage stored) internal view returns (Config memory config) {
        config.custody = stored.custody;
        config.threshold = stored.threshold;
        config.owners = new address[](stored.ownerCount);
        config.passkeys = new PublicKey[](stored.passkeyCount);
        if (config.owners.length > 0) config.owners[0] = stored.firstOwner;
        for (uint256 i = 1; i < config.owners.length; ++i) config.owners[i] = stored.moreOwners[i - 1];
        for (uint256 i = 0; i < config.passkeys.length; ++i) config.passkeys[i] = stored.passkeys[i];
    }
}
