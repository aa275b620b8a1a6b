// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Wallet} from "../../../contracts/src/Wallet.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

/// @notice Pays with the 2,300 gas that `transfer` gives.
contract Payer {
    function pay(address to) external payable {
        (bool success,) = to.call{value: msg.value, gas: 0}("");
        require(success);
    }
}

contract ReceiveTest is WalletTest {
    function testFuzz_plain_value_is_taken_with_the_stipend_alone(uint64 value) external {
        vm.assume(value > 0);
        (Wallet wallet,) = _ecdsaWallet(1);
        Payer payer = new Payer();
        vm.deal(address(this), value);
        payer.pay{value: value}(address(wallet));
        vm.assertEq(address(wallet).balance, FUNDS + value, "balance");
    }

    function test_it_is_taken_whatever_has_become_of_the_beacon() external {
        (Wallet wallet,) = _ecdsaWallet(1);
        vm.etch(address(beacon), "");
        vm.deal(address(this), 1);
        (bool success,) = address(wallet).call{value: 1}("");
        vm.assertTrue(success, "taken");
    }
}
