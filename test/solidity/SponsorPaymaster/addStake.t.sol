// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ops, Version} from "../support/Ops.sol";
import {PaymasterTest} from "../support/PaymasterTest.sol";
import {vm} from "../support/Vm.sol";

contract AddStakeTest is PaymasterTest {
    function testFuzz_the_owner_adds_to_the_stake_at_each_EntryPoint(uint8 which, uint64 value, uint32 delay) external {
        vm.assume(value > 0 && delay > 0);
        address entryPoint = Ops.entryPoint(Version(which % 3));
        _stake(entryPoint, value, delay);
        vm.assertEq(_of(entryPoint).stake, value, "stake");
        vm.assertEq(_of(entryPoint).unstakeDelaySec, delay, "delay");
        vm.assertTrue(_of(entryPoint).staked, "staked");
    }

    function testFuzz_another_contract_is_no_EntryPoint(address other) external {
        _isNone(other);
        vm.prank(owner);
        _expectUnknown(other);
        paymaster.addStake(other, 1);
    }

    function testFuzz_only_the_owner_may_call(address caller) external {
        vm.assume(caller != owner);
        vm.prank(caller);
        _expectUnauthorized(caller);
        paymaster.addStake(Ops.ENTRY_POINT_V07, 1);
    }
}
