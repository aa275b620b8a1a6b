// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OwnedInTwoSteps} from "../../../contracts/src/OwnedInTwoSteps.sol";
import {OwnerTest} from "../support/Ownership.sol";

contract WalletFactoryOwnerTest is OwnerTest {
    function _owned() internal view override returns (OwnedInTwoSteps) {
        return OwnedInTwoSteps(address(factory));
    }
}
