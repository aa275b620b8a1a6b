// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OwnedInTwoSteps} from "../../../contracts/src/OwnedInTwoSteps.sol";
import {RenounceOwnershipTest} from "../support/Ownership.sol";

contract WalletFactoryRenounceOwnershipTest is RenounceOwnershipTest {
    function _owned() internal view override returns (OwnedInTwoSteps) {
        return OwnedInTwoSteps(address(factory));
    }
}
