// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ops, Version} from "../support/Ops.sol";
import {PaymasterTest} from "../support/PaymasterTest.sol";
import {vm} from "../support/Vm.sol";

contract UnlockStakeTest is PaymasterTest {
    function testFuzz_the_owner_begins_the_delay_at_each_EntryPoint(uint8 which, uint32 delay) external {
        vm.assume(delay > 0);
        address entryPoint = Ops.entryPoint(Version(which % 3));
        _stake(entryPoint, 1, delay);
        vm.prank(owner);
        paymaster.unlockStake(entryPoint);
        vm.assertFalse(_of(entryPoint).staked, "staked");
        vm.assertEq(_of(entryPoint).withdrawTime, block.timestamp + delay, "withdrawTime");
    }

    function testFuzz_another_contract_is_no_EntryPoint(address other) external {
        _isNone(other);
        vm.prank(owner);
        _expectUnknown(other);
        paymaster.unlockStake(other);
    }

    function testFuzz_only_the_owner_may_call(address caller) external {
        vm.assume(caller != owner);
        vm.prank(caller);
        _expectUnauthorized(caller);
        paymaster.unlockStake(Ops.ENTRY_POINT_V07);
    }
}
