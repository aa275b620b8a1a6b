// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

contract DeployerTest is Suite {
    function test_it_is_who_was_named_last_and_in_storage_slot_0() external {
        vm.assertEq(factory.deployer(), deployer, "of the constructor");
        vm.prank(owner);
        factory.setDeployer(stranger);
        vm.assertEq(factory.deployer(), stranger, "named");
        vm.assertEq(vm.load(address(factory), 0), bytes32(uint256(uint160(stranger))), "slot 0");
    }
}
