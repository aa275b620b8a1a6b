// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract MinRecoveryDelayTest is WalletTest {
    function test_it_is_48_hours_in_seconds() external view {
        vm.assertEq(implementation.MIN_RECOVERY_DELAY(), 172_800, "seconds");
    }
}
