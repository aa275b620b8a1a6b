// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Config} from "../../../contracts/src/Types.sol";
import {Rotation} from "../../../contracts/src/Rotation.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Configs} from "../support/Configs.sol";
import {Op, Version} from "../support/Ops.sol";
import {Proving} from "../support/Proving.sol";
import {RecoveryTest} from "../support/RecoveryTest.sol";
import {vm} from "../support/Vm.sol";

contract FinishRecoveryTest is RecoveryTest {
    function _finish(Config memory config) private {
        vm.prank(notary);
        wallet.finishRecovery(config);
    }

    function testFuzz_installs_what_was_announced_from_that_second_on(uint256 seed, uint32 late) external {
        Config memory config = Configs.valid(1, seed);
        _start(config);
        (, uint48 readyAt) = _pending();
        vm.warp(readyAt + uint256(late));
        vm.expectEmit(address(wallet));
        emit Rotation.ConfigChanged(Proving.hashOf(config), 2);
        _finish(config);
        (Config memory installed, uint64 configNonce) = wallet.configuration();
        vm.assertEq(abi.encode(installed), abi.encode(config), "configuration");
        vm.assertEq(configNonce, 2, "configNonce");
    }

    function test_the_recovery_address_is_named_no_longer() external {
        Config memory config = Configs.valid(1, 3);
        _start(config);
        vm.warp(block.timestamp + DELAY);
        vm.expectEmit(address(wallet));
        emit Rotation.RecoveryChanged(address(0), 0);
        _finish(config);
        (address recovery, uint48 delay, bytes32 pending, uint48 readyAt) = wallet.recoveryState();
        vm.assertEq(abi.encode(recovery, delay, pending, readyAt), new bytes(128), "recoveryState");
        vm.prank(notary);
        vm.expectRevert(abi.encodeWithSelector(Rotation.OnlyRecovery.selector, notary));
        wallet.startRecovery(config);
    }

    function testFuzz_not_a_second_earlier(uint48 early) external {
        Config memory config = Configs.valid(1, 3);
        _start(config);
        (, uint48 readyAt) = _pending();
        vm.warp(readyAt - 1 - early % DELAY);
        vm.prank(notary);
        vm.expectRevert(abi.encodeWithSelector(Rotation.RecoveryNotReady.selector, readyAt));
        wallet.finishRecovery(config);
    }

    function testFuzz_another_configuration_than_the_announced_one_is_refused(uint256 a, uint256 b) external {
        Config memory config = Configs.valid(1, b);
        vm.assume(Proving.hashOf(Configs.valid(1, a)) != Proving.hashOf(config));
        _start(Configs.valid(1, a));
        vm.warp(block.timestamp + DELAY);
        vm.prank(notary);
        vm.expectRevert(abi.encodeWithSelector(Rotation.NoSuchRecovery.selector, Proving.hashOf(config)));
        wallet.finishRecovery(config);
    }

    function test_without_an_announcement_there_is_nothing_to_finish() external {
        Config memory config = Configs.valid(1, 3);
        vm.prank(notary);
        vm.expectRevert(abi.encodeWithSelector(Rotation.NoSuchRecovery.selector, Proving.hashOf(config)));
        wallet.finishRecovery(config);
    }

    function test_it_happens_once() external {
        Config memory config = Configs.valid(1, 3);
        _start(config);
        vm.warp(block.timestamp + DELAY);
        _finish(config);
        vm.prank(address(wallet));
        wallet.setRecovery(notary, DELAY);
        vm.prank(notary);
        vm.expectRevert(abi.encodeWithSelector(Rotation.NoSuchRecovery.selector, Proving.hashOf(config)));
        wallet.finishRecovery(config);
    }

    function test_the_new_owner_acts_and_the_former_is_nobody() external {
        Config memory config = Proving.config(1, 1, Proving.owners(40, 1), new uint256[](0));
        _start(config);
        vm.warp(block.timestamp + DELAY);
        _finish(config);
        bytes memory pay = abi.encodeCall(wallet.execute, (stranger, 1, ""));
        Op memory op = _op(Version.V08, wallet, pay);
        _refused(Version.V08, _signed(op, Version.V08, key), "AA24 signature error");
        _handle(Version.V08, _signed(op, Version.V08, Proving.owners(40, 1)[0]));
    }

    function testFuzz_only_the_recovery_address_may_call(address caller) external {
        vm.assume(caller != notary);
        Config memory config = Configs.valid(1, 3);
        _start(config);
        vm.warp(block.timestamp + DELAY);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(Rotation.OnlyRecovery.selector, caller));
        wallet.finishRecovery(config);
    }
}
