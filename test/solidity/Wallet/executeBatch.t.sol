// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Account as AccountBase} from "@openzeppelin/contracts/account/Account.sol";
import {Call} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Ops, Version} from "../support/Ops.sol";
import {Target} from "../support/Target.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract ExecuteBatchTest is WalletTest {
    Wallet private wallet;
    uint256 private key;
    Target private target;

    function setUp() public override {
        super.setUp();
        (wallet, key) = _ecdsaWallet(1);
        target = new Target();
    }

    function _notes(uint256 n) private view returns (Call[] memory calls) {
        calls = new Call[](n);
        for (uint256 i = 0; i < n; ++i) calls[i] = Call(address(target), i, abi.encodeCall(target.note, (i)));
    }

    function test_an_operation_of_each_EntryPoint_makes_all_calls_in_their_order() external {
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            for (uint256 n = 0; n < 3; ++n) {
                vm.expectEmit(address(target));
                emit Target.Noted(address(wallet), n, n);
            }
            bytes memory call = abi.encodeCall(wallet.executeBatch, (_notes(3)));
            _handle(version, _signed(_op(version, wallet, call), version, key));
        }
        vm.assertEq(target.notes(), 9, "calls");
    }

    function testFuzz_it_returns_what_each_call_returned(bytes calldata a, bytes calldata b) external {
        Call[] memory calls = new Call[](2);
        calls[0] = Call(address(target), 0, abi.encodeCall(target.echo, (a)));
        calls[1] = Call(address(target), 0, abi.encodeCall(target.echo, (b)));
        vm.prank(Ops.ENTRY_POINT_V07);
        bytes[] memory results = wallet.executeBatch(calls);
        vm.assertEq(results.length, 2, "results");
        vm.assertEq(results[0], abi.encode(a), "first");
        vm.assertEq(results[1], abi.encode(b), "second");
    }

    function testFuzz_the_first_revert_undoes_all_and_comes_through_unchanged(uint8 which, bytes calldata data) external {
        Call[] memory calls = _notes(5);
        calls[which % 5].data = abi.encodeCall(target.fail, (data));
        calls[which % 5].value = 0;
        vm.prank(Ops.ENTRY_POINT_V08);
        vm.expectRevert(data);
        wallet.executeBatch(calls);
        vm.assertEq(target.notes(), 0, "no call was made");
        vm.assertEq(address(wallet).balance, FUNDS, "balance");
    }

    function test_an_empty_batch_does_nothing() external {
        vm.prank(Ops.ENTRY_POINT_V06);
        vm.assertEq(wallet.executeBatch(new Call[](0)).length, 0, "results");
    }

    function test_a_batch_can_rotate_and_act_in_one() external {
        Call[] memory calls = new Call[](2);
        calls[0] = Call(address(wallet), 0, abi.encodeCall(wallet.setRecovery, (stranger, 48 hours)));
        calls[1] = Call(address(target), 1, abi.encodeCall(target.note, (1)));
        vm.prank(address(wallet));
        wallet.executeBatch(calls);
        (address recovery,,,) = wallet.recoveryState();
        vm.assertEq(recovery, stranger, "recovery");
        vm.assertEq(target.notes(), 1, "calls");
    }

    function testFuzz_nobody_else_may_call(address caller) external {
        vm.assume(caller != address(wallet) && caller != Ops.ENTRY_POINT_V06);
        vm.assume(caller != Ops.ENTRY_POINT_V07 && caller != Ops.ENTRY_POINT_V08);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(AccountBase.AccountUnauthorized.selector, caller));
        wallet.executeBatch(_notes(1));
    }
}
