// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

contract SponsorTest is Suite {
    function test_it_is_who_was_named_last() external {
        vm.assertEq(paymaster.sponsor(), sponsor, "of the constructor");
        vm.prank(owner);
        paymaster.setSponsor(stranger);
        vm.assertEq(paymaster.sponsor(), stranger, "named");
    }
}
