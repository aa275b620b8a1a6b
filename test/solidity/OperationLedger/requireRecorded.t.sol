// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OperationLedger} from "../../../contracts/src/OperationLedger.sol";
import {Call} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Op, Ops, Version} from "../support/Ops.sol";
import {Target} from "../support/Target.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {Vm, vm} from "../support/Vm.sol";

contract RequireRecordedTest is WalletTest {
    Wallet private first;
    Wallet private second;
    uint256 private firstKey;
    uint256 private secondKey;
    Target private target;

    function setUp() public override {
        super.setUp();
        (first, firstKey) = _ecdsaWallet(1);
        (second, secondKey) = _ecdsaWallet(2);
        target = new Target();
    }

    /// @dev A bundle of two ops; the second depends on the first.
    function _bundle(Version version, bytes memory firstData) private view returns (Op[] memory ops) {
        ops = new Op[](2);
        bytes32 key = keccak256(abi.encode(Ops.entryPoint(version), address(first), _nonce(version, first, 0)));
        Call[] memory calls = new Call[](2);
        calls[0] = Call(address(target), 0, firstData);
        calls[1] = Call(address(ledger), 0, abi.encodeCall(ledger.record, (key)));
        ops[0] = _signed(_op(version, first, abi.encodeCall(first.executeBatch, (calls))), version, firstKey);
        calls[0] = Call(address(ledger), 0, abi.encodeCall(ledger.requireRecorded, (address(first), key)));
        calls[1] = Call(address(target), 0, abi.encodeCall(target.note, (2)));
        ops[1] = _signed(_op(version, second, abi.encodeCall(second.executeBatch, (calls))), version, secondKey);
    }

    function test_an_operation_runs_after_the_one_that_it_depends_on() external {
        for (uint256 i = 0; i < 3; ++i) {
            Op[] memory ops = _bundle(Version(i), abi.encodeCall(target.note, (1)));
            _handle(Version(i), ops, bundler);
            vm.assertEq(target.notes(), 2 * (i + 1), "both have run");
        }
    }

    function test_an_operation_does_not_run_when_the_other_one_has_failed() external {
        for (uint256 i = 0; i < 3; ++i) {
            Op[] memory ops = _bundle(Version(i), abi.encodeCall(target.fail, ("no")));
            _handle(Version(i), ops, bundler);
            vm.assertEq(target.notes(), 0, "none has run");
        }
    }

    function test_an_operation_does_not_run_when_the_other_one_comes_later() external {
        for (uint256 i = 0; i < 3; ++i) {
            Op[] memory ops = _bundle(Version(i), abi.encodeCall(target.note, (1)));
            (ops[0], ops[1]) = (ops[1], ops[0]);
            _handle(Version(i), ops, bundler);
            vm.assertEq(target.notes(), i + 1, "only the first one");
        }
    }

    function testFuzz_what_was_never_recorded_reverts_with_its_key(address wallet, bytes32 key) external {
        vm.expectRevert(abi.encodeWithSelector(OperationLedger.DependencyFailed.selector, key));
        ledger.requireRecorded(wallet, key);
    }
}
