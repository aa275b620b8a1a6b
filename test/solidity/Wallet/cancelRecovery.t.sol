// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Config} from "../../../contracts/src/Types.sol";
import {Rotation} from "../../../contracts/src/Rotation.sol";
import {Configs} from "../support/Configs.sol";
import {Proving} from "../support/Proving.sol";
import {RecoveryTest} from "../support/RecoveryTest.sol";
import {Vm, vm} from "../support/Vm.sol";

contract CancelRecoveryTest is RecoveryTest {
    function testFuzz_the_pending_recovery_is_off(uint256 seed) external {
        Config memory config = Configs.valid(1, seed);
        _start(config);
        vm.expectEmit(address(wallet));
        emit Rotation.RecoveryCancelled(Proving.hashOf(config));
        vm.prank(address(wallet));
        wallet.cancelRecovery();
        (bytes32 pending, uint48 readyAt) = _pending();
        vm.assertEq(pending, 0, "pending");
        vm.assertEq(readyAt, 0, "readyAt");
        vm.warp(block.timestamp + DELAY);
        vm.prank(notary);
        vm.expectRevert(abi.encodeWithSelector(Rotation.NoSuchRecovery.selector, Proving.hashOf(config)));
        wallet.finishRecovery(config);
    }

    function test_without_one_nothing_happens() external {
        vm.recordLogs();
        vm.prank(address(wallet));
        wallet.cancelRecovery();
        Vm.Log[] memory logs = vm.getRecordedLogs();
        vm.assertEq(logs.length, 0, "logs");
    }

    function testFuzz_only_the_wallet_itself_may_call(address caller) external {
        vm.assume(caller != address(wallet));
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(Rotation.OnlySelf.selector, caller));
        wallet.cancelRecovery();
    }
}
