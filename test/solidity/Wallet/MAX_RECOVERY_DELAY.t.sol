// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract MaxRecoveryDelayTest is WalletTest {
    function test_it_is_365_days_in_seconds() external view {
        vm.assertEq(implementation.MAX_RECOVERY_DELAY(), 31_536_000, "seconds");
    }
}
