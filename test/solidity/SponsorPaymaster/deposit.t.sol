// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IEntryPointCommon, Ops, Version} from "../support/Ops.sol";
import {PaymasterTest} from "../support/PaymasterTest.sol";
import {vm} from "../support/Vm.sol";

contract DepositTest is PaymasterTest {
    function testFuzz_anybody_adds_to_the_deposit_at_each_EntryPoint(uint8 which, address from, uint64 value) external {
        address entryPoint = Ops.entryPoint(Version(which % 3));
        uint256 before = _of(entryPoint).deposit;
        vm.deal(from, value);
        vm.prank(from);
        paymaster.deposit{value: value}(entryPoint);
        vm.assertEq(_of(entryPoint).deposit, before + value, "deposit");
        vm.assertEq(address(paymaster).balance, 0, "nothing stays behind");
    }

    function testFuzz_another_contract_is_no_EntryPoint(address other) external {
        _isNone(other);
        _expectUnknown(other);
        paymaster.deposit(other);
    }
}
