// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Account as AccountBase} from "@openzeppelin/contracts/account/Account.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Op, Ops, Version} from "../support/Ops.sol";
import {Target} from "../support/Target.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract ExecuteTest is WalletTest {
    Wallet private wallet;
    uint256 private key;
    Target private target;

    function setUp() public override {
        super.setUp();
        (wallet, key) = _ecdsaWallet(1);
        target = new Target();
    }

    function test_an_operation_of_each_EntryPoint_calls_the_target_with_its_value() external {
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            bytes memory call = abi.encodeCall(wallet.execute, (address(target), 7, abi.encodeCall(target.note, (i))));
            vm.expectEmit(address(target));
            emit Target.Noted(address(wallet), i, 7);
            _handle(version, _signed(_op(version, wallet, call), version, key));
        }
        vm.assertEq(address(target).balance, 21, "the target has the value of three calls");
    }

    function testFuzz_return_data_comes_through_unchanged(bytes calldata data) external {
        vm.prank(Ops.ENTRY_POINT_V07);
        bytes memory returned = wallet.execute(address(target), 0, abi.encodeCall(target.echo, (data)));
        vm.assertEq(returned, abi.encode(data), "return data of the target");
    }

    function testFuzz_a_revert_of_the_target_comes_through_unchanged(bytes calldata data) external {
        vm.prank(Ops.ENTRY_POINT_V08);
        vm.expectRevert(data);
        wallet.execute(address(target), 0, abi.encodeCall(target.fail, (data)));
    }

    function test_a_call_that_the_wallet_cannot_pay_for_reverts_without_data() external {
        vm.prank(Ops.ENTRY_POINT_V06);
        vm.expectRevert(bytes(""));
        wallet.execute(address(target), FUNDS + 1, "");
    }

    function test_value_that_comes_with_the_call_can_be_spent() external {
        vm.deal(Ops.ENTRY_POINT_V07, 1 ether);
        vm.prank(Ops.ENTRY_POINT_V07);
        wallet.execute{value: 1 ether}(address(target), FUNDS + 1 ether, "");
        vm.assertEq(address(target).balance, FUNDS + 1 ether, "the target has all of it");
    }

    function test_the_wallet_may_call_itself() external {
        bytes memory inner = abi.encodeCall(wallet.execute, (address(target), 3, ""));
        vm.prank(Ops.ENTRY_POINT_V07);
        wallet.execute(address(wallet), 0, inner);
        vm.assertEq(address(target).balance, 3, "the inner call was made");
    }

    function testFuzz_nobody_else_may_call(address caller) external {
        vm.assume(caller != address(wallet) && caller != Ops.ENTRY_POINT_V06);
        vm.assume(caller != Ops.ENTRY_POINT_V07 && caller != Ops.ENTRY_POINT_V08);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(AccountBase.AccountUnauthorized.selector, caller));
        wallet.execute(address(target), 0, "");
    }

    function test_the_owner_may_not_call_directly() external {
        address holder = vm.addr(key);
        vm.prank(holder);
        vm.expectRevert(abi.encodeWithSelector(AccountBase.AccountUnauthorized.selector, holder));
        wallet.execute(address(target), 0, "");
    }
}
