// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Config} from "../../../contracts/src/Types.sol";
import {Proving} from "./Proving.sol";

/// @notice Configurations of fuzz inputs.
library Configs {
    /// @notice A configuration of that custody that obeys every rule.
    function valid(uint8 custody, uint256 seed) internal pure returns (Config memory) {
        uint256 owners = custody == 5 ? 0 : custody < 3 ? 1 : 1 + seed % 16;
        uint256 passkeys = custody == 1 || custody == 3 ? 0 : 1 + (seed >> 8) % 4;
        uint8 threshold = custody == 3 || custody == 4 ? uint8(1 + (seed >> 16) % (owners + passkeys)) : 1;
        return Proving.config(
            custody, threshold, Proving.owners(seed % 97, owners), Proving.passkeys(seed % 89, passkeys)
        );
    }
}
