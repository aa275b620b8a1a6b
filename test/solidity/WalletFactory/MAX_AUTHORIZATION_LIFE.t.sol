// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

contract MaxAuthorizationLifeTest is Suite {
    function test_it_is_an_hour_in_seconds() external view {
        vm.assertEq(factory.MAX_AUTHORIZATION_LIFE(), 3_600, "seconds");
    }
}
