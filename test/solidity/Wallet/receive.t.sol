// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Wallet} from "../../../contracts/src/Wallet.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract ReceiveTest is WalletTest {
    function testFuzz_a_wallet_takes_value_from_anybody(address from, uint96 value) external {
        (Wallet wallet,) = _ecdsaWallet(1);
        vm.assume(from != address(wallet));
        vm.deal(from, value);
        vm.prank(from);
        (bool success,) = address(wallet).call{value: value}("");
        vm.assertTrue(success, "taken");
        vm.assertEq(address(wallet).balance, FUNDS + value, "balance");
    }

    function test_so_does_the_implementation_itself() external {
        vm.deal(stranger, 1);
        vm.prank(stranger);
        (bool success,) = address(implementation).call{value: 1}("");
        vm.assertTrue(success, "taken");
    }
}
