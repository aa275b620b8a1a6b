// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

contract ImplementationTest is Suite {
    function test_it_is_what_was_named_last() external {
        vm.assertEq(beacon.implementation(), address(implementation), "of the constructor");
        vm.prank(beaconOwner);
        beacon.upgradeTo(address(ledger));
        vm.assertEq(beacon.implementation(), address(ledger), "of the upgrade");
    }
}
