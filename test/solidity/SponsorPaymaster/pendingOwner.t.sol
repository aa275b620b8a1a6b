// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OwnedInTwoSteps} from "../../../contracts/src/OwnedInTwoSteps.sol";
import {PendingOwnerTest} from "../support/Ownership.sol";

contract SponsorPaymasterPendingOwnerTest is PendingOwnerTest {
    function _owned() internal view override returns (OwnedInTwoSteps) {
        return OwnedInTwoSteps(address(paymaster));
    }
}
