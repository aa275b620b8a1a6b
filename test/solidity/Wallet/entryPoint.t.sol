// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Ops} from "../support/Ops.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract EntryPointTest is WalletTest {
    function test_it_is_v07() external {
        (Wallet wallet,) = _ecdsaWallet(1);
        vm.assertEq(address(wallet.entryPoint()), Ops.ENTRY_POINT_V07, "EntryPoint");
    }
}
