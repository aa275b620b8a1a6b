// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {PackedUserOperation} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {SponsorPaymaster} from "../../../contracts/src/SponsorPaymaster.sol";
import {UserOperationV06} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {IEntryPointCommon, Op, Ops, Version} from "../support/Ops.sol";
import {Proving} from "../support/Proving.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract ValidatePaymasterUserOpTest is WalletTest {
    using Ops for Op;

    string private constant WRONG = "AA34 signature error";

    Wallet private wallet;
    uint256 private key;

    function setUp() public override {
        super.setUp();
        (wallet, key) = _ecdsaWallet(1);
    }

    /// @dev Validates as the EntryPoint does, in a transaction of {bundler}.
    function _validate(Version version, Op memory op, bytes32 hash) private returns (uint256 data) {
        bytes memory context;
        if (version == Version.V06) {
            UserOperationV06 memory unpacked = op.asV06();
            vm.prank(Ops.ENTRY_POINT_V06, bundler);
            (context, data) = paymaster.validatePaymasterUserOp(unpacked, hash, 0);
        } else {
            PackedUserOperation memory packed = op.pack();
            vm.prank(Ops.entryPoint(version), bundler);
            (context, data) = paymaster.validatePaymasterUserOp(packed, hash, 0);
        }
        vm.assertEq(context.length, 0, "context");
    }

    function _window(uint48 until, uint48 from) private pure returns (uint256) {
        return (uint256(from) << 208) | (uint256(until) << 160);
    }

    function _withTail(Op memory op, bytes memory tail) private pure returns (Op memory) {
        op.signature = bytes.concat("signed for the wallet", tail);
        return op;
    }

    function test_it_pays_for_what_the_sponsor_has_signed_and_the_wallet_pays_nothing() external {
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            address entryPoint = Ops.entryPoint(version);
            uint256 deposit = IEntryPointCommon(entryPoint).balanceOf(address(paymaster));
            uint256 own = IEntryPointCommon(entryPoint).balanceOf(address(wallet));
            _handle(version, _sponsored(_op(version, wallet, ""), version, key));
            vm.assertTrue(IEntryPointCommon(entryPoint).balanceOf(address(paymaster)) < deposit, "deposit");
            vm.assertEq(IEntryPointCommon(entryPoint).balanceOf(address(wallet)), own, "the wallet's deposit");
            vm.assertEq(address(wallet).balance, FUNDS, "the wallet's balance");
        }
    }

    function testFuzz_it_returns_the_window(uint8 which, uint48 until, uint48 from, bool bound) external {
        Version version = Version(which % 3);
        Op memory op = _op(version, wallet, "");
        op.paymasterAndData = _sponsorData(version, until, from, bound);
        bytes32 hash = op.hash(version);
        bytes memory right = _sponsorship(hash, bound ? bundler : address(0), SPONSOR_KEY);
        vm.assertEq(_validate(version, _withTail(op, right), hash), _window(until, from), "sponsored");
        bytes memory wrong = _sponsorship(hash, bound ? bundler : address(0), STRANGER_KEY);
        vm.assertEq(_validate(version, _withTail(op, wrong), hash), _window(until, from) | 1, "by a stranger");
    }

    function test_a_window_is_kept() external {
        vm.warp(1_000_000);
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            for (uint256 late = 0; late < 2; ++late) {
                Op memory op = _op(version, wallet, "");
                op.paymasterAndData = _sponsorData(version, late == 1 ? 999_999 : 0, late == 1 ? 0 : 1_000_001, true);
                op = _signed(op, version, key);
                op.signature = bytes.concat(op.signature, _sponsorship(op.hash(version), bundler, SPONSOR_KEY));
                _refused(version, op, "AA32 paymaster expired or not due");
            }
        }
    }

    function testFuzz_it_is_for_the_submitter_that_it_names(uint8 which, address other) external {
        vm.assume(other != bundler && other != address(0) && other.code.length == 0);
        Version version = Version(which % 3);
        Op memory op = _sponsored(_op(version, wallet, ""), version, key);
        (bool success, bytes memory result) = _submit(version, Ops.only(op), other);
        vm.assertFalse(success, "refused");
        vm.assertEq(result, abi.encodeWithSelector(IEntryPointCommon.FailedOp.selector, 0, WRONG), WRONG);
    }

    function testFuzz_unbound_it_is_for_everybody(uint8 which, address other) external {
        vm.assume(other != address(0) && other.code.length == 0 && uint160(other) > 0x1000);
        Version version = Version(which % 3);
        Op memory op = _op(version, wallet, "");
        op.paymasterAndData = _sponsorData(version, 0, 0, false);
        op = _signed(op, version, key);
        op.signature = bytes.concat(op.signature, _sponsorship(op.hash(version), address(0), SPONSOR_KEY));
        _handle(version, Ops.only(op), other);
    }

    function testFuzz_it_is_for_one_operation_once(uint8 which, bytes32 other) external {
        Version version = Version(which % 3);
        Op memory op = _sponsored(_op(version, wallet, ""), version, key);
        vm.assume(other != op.hash(version));
        vm.assertEq(_validate(version, op, other), 1, "another hash");
        _handle(version, op);
        (bool success,) = _submit(version, Ops.only(op), bundler);
        vm.assertFalse(success, "twice");
    }

    function testFuzz_it_is_for_the_chain_that_its_domain_names(uint8 which, uint64 one, uint64 other) external {
        vm.assume(one != other);
        Version version = Version(which % 3);
        Op memory op = _op(version, wallet, "");
        op.paymasterAndData = _sponsorData(version, 0, 0, true);
        // The same hash on both chains: only the paymaster's domain differs.
        bytes32 hash = op.hash(version);
        vm.chainId(one);
        Op memory signed = _withTail(op, _sponsorship(hash, bundler, SPONSOR_KEY));
        vm.assertEq(_validate(version, signed, hash), 0, "on its chain");
        vm.chainId(other);
        vm.assertEq(_validate(version, signed, hash), 1, "on another chain");
    }

    function testFuzz_paymasterAndData_of_another_length_is_worthless(uint8 which, bytes calldata junk) external {
        Version version = Version(which % 3);
        Op memory op = _op(version, wallet, "");
        bytes memory limits = version == Version.V06 ? bytes("") : new bytes(32);
        op.paymasterAndData = bytes.concat(abi.encodePacked(address(paymaster)), limits, junk);
        vm.assume(junk.length != 12 && (junk.length != 13 || junk[12] != 0x01));
        bytes32 hash = op.hash(version);
        Op memory signed = _withTail(op, _sponsorship(hash, bundler, SPONSOR_KEY));
        vm.assertEq(_validate(version, signed, hash) & 1, 1, "bound");
        signed = _withTail(op, _sponsorship(hash, address(0), SPONSOR_KEY));
        vm.assertEq(_validate(version, signed, hash) & 1, 1, "unbound");
    }

    function testFuzz_a_mark_other_than_1_is_worthless(uint8 which, bytes1 mark) external {
        vm.assume(mark != 0x01);
        Version version = Version(which % 3);
        Op memory op = _op(version, wallet, "");
        op.paymasterAndData = bytes.concat(_sponsorData(version, 0, 0, true), mark);
        bytes32 hash = op.hash(version);
        Op memory signed = _withTail(op, _sponsorship(hash, address(0), SPONSOR_KEY));
        vm.assertEq(_validate(version, signed, hash), 1, "another mark");
    }

    function testFuzz_a_signature_shorter_than_its_tail_is_worthless(uint8 which, bytes calldata signature) external {
        vm.assume(signature.length < 65);
        Version version = Version(which % 3);
        Op memory op = _op(version, wallet, "");
        op.paymasterAndData = _sponsorData(version, 0, 0, true);
        op.signature = signature;
        vm.assertEq(_validate(version, op, op.hash(version)), 1, "too short");
    }

    function test_a_tail_that_recovers_nobody_or_has_a_high_s_is_worthless() external {
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            Op memory op = _op(version, wallet, "");
            op.paymasterAndData = _sponsorData(version, 0, 0, true);
            bytes32 hash = op.hash(version);
            vm.assertEq(_validate(version, _withTail(op, new bytes(65)), hash), 1, "zeros");
            bytes memory right = _sponsorship(hash, bundler, SPONSOR_KEY);
            bytes memory high = Proving.flipped(right);
            vm.assertEq(_validate(version, _withTail(op, right), hash), 0, "low s");
            vm.assertEq(_validate(version, _withTail(op, high), hash), 1, "high s");
        }
    }

    function testFuzz_the_packed_form_is_for_v07_and_v08_alone(address caller) external {
        vm.assume(caller != Ops.ENTRY_POINT_V07 && caller != Ops.ENTRY_POINT_V08);
        PackedUserOperation memory packed = _sponsored(_op(Version.V07, wallet, ""), Version.V07, key).pack();
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(SponsorPaymaster.UnknownEntryPoint.selector, caller));
        paymaster.validatePaymasterUserOp(packed, 0, 0);
    }

    function testFuzz_the_form_of_v06_is_for_v06_alone(address caller) external {
        vm.assume(caller != Ops.ENTRY_POINT_V06);
        UserOperationV06 memory unpacked = _sponsored(_op(Version.V06, wallet, ""), Version.V06, key).asV06();
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(SponsorPaymaster.UnknownEntryPoint.selector, caller));
        paymaster.validatePaymasterUserOp(unpacked, 0, 0);
    }
}
