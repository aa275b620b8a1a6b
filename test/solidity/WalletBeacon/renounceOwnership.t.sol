// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OwnedInTwoSteps} from "../../../contracts/src/OwnedInTwoSteps.sol";
import {RenounceOwnershipTest} from "../support/Ownership.sol";

contract WalletBeaconRenounceOwnershipTest is RenounceOwnershipTest {
    function _owned() internal view override returns (OwnedInTwoSteps) {
        return OwnedInTwoSteps(address(beacon));
    }

    function _firstOwner() internal view override returns (address) {
        return beaconOwner;
    }
}
