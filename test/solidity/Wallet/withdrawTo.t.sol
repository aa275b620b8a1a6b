// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Rotation} from "../../../contracts/src/Rotation.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {IEntryPointCommon, Ops, Version} from "../support/Ops.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract WithdrawToTest is WalletTest {
    Wallet private wallet;
    uint256 private key;

    function setUp() public override {
        super.setUp();
        (wallet, key) = _ecdsaWallet(1);
        vm.deal(address(this), 3 ether);
        for (uint256 i = 0; i < 3; ++i) {
            IEntryPointCommon(Ops.entryPoint(Version(i))).depositTo{value: 1 ether}(address(wallet));
        }
    }

    function testFuzz_takes_the_amount_out_of_the_deposit_at_each_EntryPoint(uint8 which, uint64 amount) external {
        address entryPoint = Ops.entryPoint(Version(which % 3));
        uint256 before = IEntryPointCommon(entryPoint).balanceOf(address(wallet));
        vm.assume(amount <= before);
        vm.prank(address(wallet));
        wallet.withdrawTo(entryPoint, payable(stranger), amount);
        vm.assertEq(stranger.balance, amount, "the recipient's balance");
        vm.assertEq(IEntryPointCommon(entryPoint).balanceOf(address(wallet)), before - amount, "deposit");
    }

    function test_an_operation_does_it_by_a_call_of_the_wallet_to_itself() external {
        bytes memory inner = abi.encodeCall(wallet.withdrawTo, (Ops.ENTRY_POINT_V06, payable(stranger), 1 ether));
        bytes memory call = abi.encodeCall(wallet.execute, (address(wallet), 0, inner));
        _handle(Version.V08, _signed(_op(Version.V08, wallet, call), Version.V08, key));
        vm.assertEq(stranger.balance, 1 ether, "the recipient's balance");
    }

    function test_more_than_the_deposit_is_refused_by_the_EntryPoint() external {
        vm.prank(address(wallet));
        vm.expectRevert(abi.encodeWithSignature("Error(string)", "Withdraw amount too large"));
        wallet.withdrawTo(Ops.ENTRY_POINT_V06, payable(stranger), 2 ether);
    }

    function testFuzz_another_contract_is_no_EntryPoint(address other) external {
        vm.assume(other != Ops.ENTRY_POINT_V06 && other != Ops.ENTRY_POINT_V07 && other != Ops.ENTRY_POINT_V08);
        vm.prank(address(wallet));
        vm.expectRevert(abi.encodeWithSelector(Wallet.UnknownEntryPoint.selector, other));
        wallet.withdrawTo(other, payable(stranger), 1);
    }

    function testFuzz_only_the_wallet_itself_may_call(address caller) external {
        vm.assume(caller != address(wallet));
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(Rotation.OnlySelf.selector, caller));
        wallet.withdrawTo(Ops.ENTRY_POINT_V07, payable(caller), 1);
    }

    function test_an_EntryPoint_may_not_call_directly() external {
        vm.prank(Ops.ENTRY_POINT_V07);
        vm.expectRevert(abi.encodeWithSelector(Rotation.OnlySelf.selector, Ops.ENTRY_POINT_V07));
        wallet.withdrawTo(Ops.ENTRY_POINT_V07, payable(stranger), 1);
    }
}
