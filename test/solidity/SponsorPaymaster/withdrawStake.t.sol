// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ops, Version} from "../support/Ops.sol";
import {PaymasterTest} from "../support/PaymasterTest.sol";
import {vm} from "../support/Vm.sol";

contract WithdrawStakeTest is PaymasterTest {
    function testFuzz_the_owner_takes_out_the_stake_once_the_delay_is_over(uint8 which, uint64 value) external {
        vm.assume(value > 0);
        address entryPoint = Ops.entryPoint(Version(which % 3));
        _stake(entryPoint, value, 100);
        vm.prank(owner);
        paymaster.unlockStake(entryPoint);
        vm.prank(owner);
        vm.expectRevert();
        paymaster.withdrawStake(entryPoint, payable(stranger));
        vm.warp(block.timestamp + 100);
        vm.prank(owner);
        paymaster.withdrawStake(entryPoint, payable(stranger));
        vm.assertEq(stranger.balance, value, "who it goes to");
        vm.assertEq(_of(entryPoint).stake, 0, "stake");
    }

    function testFuzz_another_contract_is_no_EntryPoint(address other) external {
        _isNone(other);
        vm.prank(owner);
        _expectUnknown(other);
        paymaster.withdrawStake(other, payable(stranger));
    }

    function testFuzz_only_the_owner_may_call(address caller) external {
        vm.assume(caller != owner);
        vm.prank(caller);
        _expectUnauthorized(caller);
        paymaster.withdrawStake(Ops.ENTRY_POINT_V07, payable(caller));
    }
}
