// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Config} from "../../../contracts/src/Types.sol";
import {Rotation} from "../../../contracts/src/Rotation.sol";
import {Configs} from "../support/Configs.sol";
import {Proving} from "../support/Proving.sol";
import {RecoveryTest} from "../support/RecoveryTest.sol";
import {vm} from "../support/Vm.sol";

contract SetRecoveryTest is RecoveryTest {
    function _set(address recovery, uint48 delay) private {
        vm.prank(address(wallet));
        wallet.setRecovery(recovery, delay);
    }

    function testFuzz_names_an_address_and_a_delay_of_48_hours_to_365_days(address recovery, uint48 delay) external {
        vm.assume(recovery != address(0));
        delay = 48 hours + delay % (365 days - 48 hours + 1);
        vm.expectEmit(address(wallet));
        emit Rotation.RecoveryChanged(recovery, delay);
        _set(recovery, delay);
        (address named, uint48 wait,,) = wallet.recoveryState();
        vm.assertEq(named, recovery, "recovery");
        vm.assertEq(wait, delay, "delay");
    }

    function testFuzz_a_shorter_delay_is_refused(address recovery, uint48 delay) external {
        vm.assume(recovery != address(0));
        delay = delay % 48 hours;
        vm.prank(address(wallet));
        vm.expectRevert(abi.encodeWithSelector(Rotation.InvalidRecoveryDelay.selector, delay));
        wallet.setRecovery(recovery, delay);
    }

    function test_both_bounds_are_delays_of_48_hours_and_365_days_in_seconds() external {
        vm.assertEq(implementation.MIN_RECOVERY_DELAY(), 172_800, "least");
        vm.assertEq(implementation.MAX_RECOVERY_DELAY(), 31_536_000, "most");
        _set(notary, 48 hours);
        _set(notary, 365 days);
        (, uint48 wait,,) = wallet.recoveryState();
        vm.assertEq(wait, 365 days, "delay");
    }

    function testFuzz_a_longer_delay_is_refused(address recovery, uint48 delay) external {
        vm.assume(recovery != address(0));
        if (delay <= 365 days) delay += 365 days + 1;
        vm.prank(address(wallet));
        vm.expectRevert(abi.encodeWithSelector(Rotation.InvalidRecoveryDelay.selector, delay));
        wallet.setRecovery(recovery, delay);
        vm.prank(address(wallet));
        vm.expectRevert(abi.encodeWithSelector(Rotation.InvalidRecoveryDelay.selector, 365 days + 1));
        wallet.setRecovery(recovery, 365 days + 1);
    }

    function testFuzz_a_delay_without_an_address_is_refused(uint48 delay) external {
        vm.assume(delay != 0);
        vm.prank(address(wallet));
        vm.expectRevert(abi.encodeWithSelector(Rotation.InvalidRecoveryDelay.selector, delay));
        wallet.setRecovery(address(0), delay);
    }

    function test_the_zero_address_removes_it() external {
        _set(address(0), 0);
        vm.prank(notary);
        vm.expectRevert(abi.encodeWithSelector(Rotation.OnlyRecovery.selector, notary));
        wallet.startRecovery(Configs.valid(1, 1));
    }

    function test_a_pending_recovery_is_off() external {
        Config memory config = Configs.valid(1, 1);
        _start(config);
        vm.expectEmit(address(wallet));
        emit Rotation.RecoveryCancelled(Proving.hashOf(config));
        _set(notary, DELAY);
        (bytes32 pending, uint48 readyAt) = _pending();
        vm.assertEq(pending, 0, "pending");
        vm.assertEq(readyAt, 0, "readyAt");
    }

    function testFuzz_only_the_wallet_itself_may_call(address caller) external {
        vm.assume(caller != address(wallet));
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(Rotation.OnlySelf.selector, caller));
        wallet.setRecovery(caller, DELAY);
    }
}
