// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Config} from "../../../contracts/src/Types.sol";
import {Rotation} from "../../../contracts/src/Rotation.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {ConfigRulesTest} from "../support/ConfigRulesTest.sol";
import {Configs} from "../support/Configs.sol";
import {Proving} from "../support/Proving.sol";
import {RecoveryTest} from "../support/RecoveryTest.sol";
import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

contract StartRecoveryTest is RecoveryTest, ConfigRulesTest {
    function setUp() public override(RecoveryTest, Suite) {
        super.setUp();
    }

    function _installs(Config memory config) internal override {
        _start(config);
    }

    function testFuzz_announces_a_configuration_and_changes_none(uint256 seed) external {
        (Config memory before, uint64 configNonce) = wallet.configuration();
        Config memory config = Configs.valid(1, seed);
        uint48 readyAt = uint48(block.timestamp) + DELAY;
        vm.expectEmit(address(wallet));
        emit Rotation.RecoveryStarted(Proving.hashOf(config), readyAt);
        _start(config);
        (address recovery, uint48 delay, bytes32 pending, uint48 ready) = wallet.recoveryState();
        bytes memory expected = abi.encode(notary, DELAY, Proving.hashOf(config), readyAt);
        vm.assertEq(abi.encode(recovery, delay, pending, ready), expected, "recoveryState");
        (Config memory afterwards, uint64 sameNonce) = wallet.configuration();
        vm.assertEq(abi.encode(afterwards), abi.encode(before), "configuration");
        vm.assertEq(sameNonce, configNonce, "configNonce");
    }

    function test_a_later_announcement_replaces_the_earlier_one_and_its_time() external {
        Config memory first = Configs.valid(1, 1);
        Config memory second = Configs.valid(1, 2);
        _start(first);
        vm.warp(block.timestamp + 1 hours);
        vm.expectEmit(address(wallet));
        emit Rotation.RecoveryCancelled(Proving.hashOf(first));
        vm.expectEmit(address(wallet));
        emit Rotation.RecoveryStarted(Proving.hashOf(second), uint48(block.timestamp) + DELAY);
        _start(second);
    }

    function test_custody_never_changes() external {
        Config memory config = Configs.valid(5, 1);
        vm.prank(notary);
        vm.expectRevert(abi.encodeWithSelector(Rotation.CustodyIsFixed.selector, 5));
        wallet.startRecovery(config);
    }

    function testFuzz_only_the_recovery_address_may_call(address caller) external {
        vm.assume(caller != notary);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(Rotation.OnlyRecovery.selector, caller));
        wallet.startRecovery(Configs.valid(1, 1));
    }

    function test_nobody_may_call_where_the_wallet_has_named_nobody() external {
        (Wallet other,) = _ecdsaWallet(9);
        (address recovery, uint48 delay, bytes32 pending, uint48 readyAt) = other.recoveryState();
        vm.assertEq(abi.encode(recovery, delay, pending, readyAt), new bytes(128), "recoveryState");
        vm.prank(address(0));
        vm.expectRevert(abi.encodeWithSelector(Rotation.OnlyRecovery.selector, address(0)));
        other.startRecovery(Configs.valid(1, 1));
    }
}
