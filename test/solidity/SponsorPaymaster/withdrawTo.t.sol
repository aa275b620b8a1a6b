// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ops, Version} from "../support/Ops.sol";
import {PaymasterTest} from "../support/PaymasterTest.sol";
import {vm} from "../support/Vm.sol";

contract WithdrawToTest is PaymasterTest {
    function testFuzz_the_owner_takes_wei_out_of_the_deposit_at_each_EntryPoint(uint8 which, uint64 amount) external {
        address entryPoint = Ops.entryPoint(Version(which % 3));
        uint256 before = _of(entryPoint).deposit;
        vm.assume(amount <= before);
        vm.prank(owner);
        paymaster.withdrawTo(entryPoint, payable(stranger), amount);
        vm.assertEq(stranger.balance, amount, "who it goes to");
        vm.assertEq(_of(entryPoint).deposit, before - amount, "deposit");
    }

    function testFuzz_another_contract_is_no_EntryPoint(address other) external {
        _isNone(other);
        vm.prank(owner);
        _expectUnknown(other);
        paymaster.withdrawTo(other, payable(stranger), 0);
    }

    function testFuzz_only_the_owner_may_call(address caller) external {
        vm.assume(caller != owner);
        vm.prank(caller);
        _expectUnauthorized(caller);
        paymaster.withdrawTo(Ops.ENTRY_POINT_V07, payable(caller), 1);
    }
}
