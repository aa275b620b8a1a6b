// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ops, Version} from "../support/Ops.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract IsEntryPointTest is WalletTest {
    function test_the_three_canonical_ones_are() external view {
        for (uint256 i = 0; i < 3; ++i) {
            vm.assertTrue(implementation.isEntryPoint(Ops.entryPoint(Version(i))), "is one");
        }
    }

    function testFuzz_nothing_else_is(address other) external view {
        vm.assume(other != Ops.ENTRY_POINT_V06 && other != Ops.ENTRY_POINT_V07 && other != Ops.ENTRY_POINT_V08);
        vm.assertFalse(implementation.isEntryPoint(other), "is none");
    }
}
