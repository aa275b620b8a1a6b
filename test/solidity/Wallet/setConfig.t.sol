// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Config} from "../../../contracts/src/Types.sol";
import {Rotation} from "../../../contracts/src/Rotation.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Configs} from "../support/Configs.sol";
import {ConfigRulesTest} from "../support/ConfigRulesTest.sol";
import {Op, Ops, Version} from "../support/Ops.sol";
import {Proving} from "../support/Proving.sol";
import {Target} from "../support/Target.sol";
import {vm} from "../support/Vm.sol";

contract SetConfigTest is ConfigRulesTest {
    Wallet private wallet;
    uint256 private key;
    uint256[] private none;

    function setUp() public override {
        super.setUp();
        (wallet, key) = _ecdsaWallet(1);
    }

    function _installs(Config memory config) internal override {
        vm.prank(address(wallet));
        wallet.setConfig(config);
    }

    function testFuzz_whatever_obeys_the_rules_replaces_the_whole(uint8 custody, uint256 a, uint256 b) external {
        custody = 1 + custody % 5;
        Wallet other = _wallet(Configs.valid(custody, a));
        Config memory config = Configs.valid(custody, b);
        vm.expectEmit(address(other));
        emit Rotation.ConfigChanged(Proving.hashOf(config), 2);
        vm.prank(address(other));
        other.setConfig(config);
        (Config memory installed, uint64 configNonce) = other.configuration();
        vm.assertEq(abi.encode(installed), abi.encode(config), "configuration");
        vm.assertEq(configNonce, 2, "configNonce");
    }

    function testFuzz_custody_never_changes(uint8 custody, uint256 seed) external {
        custody = 2 + custody % 4;
        Config memory config = Configs.valid(custody, seed);
        vm.prank(address(wallet));
        vm.expectRevert(abi.encodeWithSelector(Rotation.CustodyIsFixed.selector, custody));
        wallet.setConfig(config);
    }

    function test_the_former_owner_is_nobody_and_the_new_one_acts() external {
        uint256 other = Proving.owners(50, 1)[0];
        bytes memory inner =
            abi.encodeCall(wallet.setConfig, (Proving.config(1, 1, Proving.owners(50, 1), none)));
        bytes memory call = abi.encodeCall(wallet.execute, (address(wallet), 0, inner));
        _handle(Version.V07, _signed(_op(Version.V07, wallet, call), Version.V07, key));
        bytes memory pay = abi.encodeCall(wallet.execute, (stranger, 1, ""));
        for (uint256 i = 0; i < 3; ++i) {
            Op memory op = _op(Version(i), wallet, pay);
            _refused(Version(i), _signed(op, Version(i), key), "AA24 signature error");
            _handle(Version(i), _signed(op, Version(i), other));
        }
        vm.assertEq(stranger.balance, 3, "the new owner has paid");
    }

    function _nothingIsNamed() private view {
        (address recovery, uint48 delay, bytes32 pending, uint48 readyAt) = wallet.recoveryState();
        vm.assertEq(abi.encode(recovery, delay, pending, readyAt), new bytes(128), "recoveryState");
    }

    function testFuzz_what_was_named_before_is_gone_and_starts_nothing(address recovery, uint48 delay) external {
        vm.assume(recovery != address(0));
        delay = 48 hours + delay % (365 days - 48 hours + 1);
        vm.prank(address(wallet));
        wallet.setRecovery(recovery, delay);
        vm.expectEmit(address(wallet));
        emit Rotation.RecoveryChanged(address(0), 0);
        _installs(Configs.valid(1, 61));
        _nothingIsNamed();
        vm.warp(block.timestamp + delay);
        vm.prank(recovery);
        vm.expectRevert(abi.encodeWithSelector(Rotation.OnlyRecovery.selector, recovery));
        wallet.startRecovery(Configs.valid(1, 60));
    }

    function test_where_nothing_was_named_nothing_is_said() external {
        vm.recordLogs();
        _installs(Configs.valid(1, 61));
        vm.assertEq(vm.getRecordedLogs().length, 1, "only ConfigChanged");
    }

    function test_a_pending_recovery_is_off() external {
        Config memory config = Configs.valid(1, 60);
        vm.prank(address(wallet));
        wallet.setRecovery(stranger, 48 hours);
        vm.prank(stranger);
        wallet.startRecovery(config);
        vm.expectEmit(address(wallet));
        emit Rotation.RecoveryCancelled(Proving.hashOf(config));
        _installs(Configs.valid(1, 61));
        _nothingIsNamed();
    }

    function test_a_configuration_that_is_refused_leaves_the_recovery_as_it_is() external {
        vm.prank(address(wallet));
        wallet.setRecovery(stranger, 48 hours);
        Config memory config = Configs.valid(5, 60);
        vm.prank(address(wallet));
        vm.expectRevert(abi.encodeWithSelector(Rotation.CustodyIsFixed.selector, 5));
        wallet.setConfig(config);
        (address recovery, uint48 delay,,) = wallet.recoveryState();
        vm.assertEq(recovery, stranger, "recovery");
        vm.assertEq(delay, 48 hours, "delay");
    }

    function testFuzz_only_the_wallet_itself_may_call(address caller) external {
        vm.assume(caller != address(wallet));
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(Rotation.OnlySelf.selector, caller));
        wallet.setConfig(Configs.valid(1, 2));
    }
}
