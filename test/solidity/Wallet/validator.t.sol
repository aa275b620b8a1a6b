// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Wallet} from "../../../contracts/src/Wallet.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract ValidatorTest is WalletTest {
    function test_it_is_the_one_of_the_constructor() external {
        (Wallet wallet,) = _ecdsaWallet(1);
        vm.assertEq(wallet.validator(), address(validator), "of a wallet");
        vm.assertEq(implementation.validator(), address(validator), "of the implementation");
    }
}
