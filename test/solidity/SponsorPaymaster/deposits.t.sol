// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {SponsorPaymaster} from "../../../contracts/src/SponsorPaymaster.sol";
import {IEntryPointCommon, Ops, Version} from "../support/Ops.sol";
import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

/// @notice The functions that name an EntryPoint: deposit, withdrawTo, addStake, unlockStake, withdrawStake.
contract DepositsTest is Suite {
    function _of(address entryPoint) private view returns (IEntryPointCommon.DepositInfo memory) {
        return IEntryPointCommon(entryPoint).getDepositInfo(address(paymaster));
    }

    function _ofTheOwner(address entryPoint) private view returns (bytes[4] memory) {
        return [
            abi.encodeCall(paymaster.withdrawTo, (entryPoint, payable(stranger), 0)),
            abi.encodeCall(paymaster.addStake, (entryPoint, 1)),
            abi.encodeCall(paymaster.unlockStake, (entryPoint)),
            abi.encodeCall(paymaster.withdrawStake, (entryPoint, payable(stranger)))
        ];
    }

    function _reverts(address caller, bytes memory data, bytes memory failure) private {
        vm.prank(caller);
        (bool success, bytes memory result) = address(paymaster).call(data);
        vm.assertFalse(success, "refused");
        vm.assertEq(result, failure, "why");
    }

    function testFuzz_anybody_adds_to_the_deposit_and_the_owner_takes_out_of_it(
        uint8 which,
        address from,
        uint64 value,
        uint64 amount
    ) external {
        address entryPoint = Ops.entryPoint(Version(which % 3));
        vm.assume(from.code.length == 0 && from != stranger);
        uint256 before = _of(entryPoint).deposit;
        vm.deal(from, value);
        vm.prank(from);
        paymaster.deposit{value: value}(entryPoint);
        vm.assertEq(_of(entryPoint).deposit, before + value, "deposit");
        vm.assertEq(address(paymaster).balance, 0, "nothing stays behind");
        vm.assume(amount <= before + value);
        uint256 had = stranger.balance;
        vm.prank(owner);
        paymaster.withdrawTo(entryPoint, payable(stranger), amount);
        vm.assertEq(stranger.balance, had + amount, "the recipient's balance");
        vm.assertEq(_of(entryPoint).deposit, before + value - amount, "rest of the deposit");
    }

    function testFuzz_the_owner_stakes_and_takes_it_out_once_the_delay_is_over(uint8 which, uint64 value, uint32 delay)
        external
    {
        vm.assume(value > 0 && delay > 0);
        address entryPoint = Ops.entryPoint(Version(which % 3));
        vm.deal(owner, value);
        vm.prank(owner);
        paymaster.addStake{value: value}(entryPoint, delay);
        vm.assertEq(_of(entryPoint).stake, value, "stake");
        vm.assertEq(_of(entryPoint).unstakeDelaySec, delay, "delay");
        vm.assertTrue(_of(entryPoint).staked, "staked");
        vm.prank(owner);
        paymaster.unlockStake(entryPoint);
        vm.assertFalse(_of(entryPoint).staked, "unlocked");
        vm.assertEq(_of(entryPoint).withdrawTime, block.timestamp + delay, "withdrawTime");
        vm.prank(owner);
        vm.expectRevert();
        paymaster.withdrawStake(entryPoint, payable(stranger));
        vm.warp(block.timestamp + delay);
        vm.prank(owner);
        paymaster.withdrawStake(entryPoint, payable(stranger));
        vm.assertEq(stranger.balance, value, "the recipient's balance");
        vm.assertEq(_of(entryPoint).stake, 0, "no stake");
    }

    function testFuzz_another_contract_is_no_EntryPoint(address other) external {
        vm.assume(other != Ops.ENTRY_POINT_V06 && other != Ops.ENTRY_POINT_V07 && other != Ops.ENTRY_POINT_V08);
        bytes memory failure = abi.encodeWithSelector(SponsorPaymaster.UnknownEntryPoint.selector, other);
        bytes[4] memory calls = _ofTheOwner(other);
        for (uint256 i = 0; i < 4; ++i) _reverts(owner, calls[i], failure);
        _reverts(stranger, abi.encodeCall(paymaster.deposit, (other)), failure);
    }

    function testFuzz_only_the_owner_takes_out_and_stakes(address caller) external {
        vm.assume(caller != owner);
        bytes memory failure = abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, caller);
        bytes[4] memory calls = _ofTheOwner(Ops.ENTRY_POINT_V07);
        for (uint256 i = 0; i < 4; ++i) _reverts(caller, calls[i], failure);
    }
}
