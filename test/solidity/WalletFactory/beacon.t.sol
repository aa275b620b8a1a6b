// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

contract BeaconTest is Suite {
    function test_it_is_the_one_of_the_constructor() external view {
        vm.assertEq(factory.beacon(), address(beacon), "beacon");
    }
}
