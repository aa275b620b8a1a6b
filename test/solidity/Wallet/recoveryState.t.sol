// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Config} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Configs} from "../support/Configs.sol";
import {Proving} from "../support/Proving.sol";
import {RecoveryTest} from "../support/RecoveryTest.sol";
import {vm} from "../support/Vm.sol";

contract RecoveryStateTest is RecoveryTest {
    function test_it_is_all_zero_where_nothing_was_named() external {
        (Wallet other,) = _ecdsaWallet(9);
        (address recovery, uint48 delay, bytes32 pending, uint48 readyAt) = other.recoveryState();
        vm.assertEq(abi.encode(recovery, delay, pending, readyAt), new bytes(128), "state");
    }

    function test_it_is_what_was_named_and_what_is_pending() external {
        Config memory config = Configs.valid(1, 5);
        _start(config);
        (address recovery, uint48 delay, bytes32 pending, uint48 readyAt) = wallet.recoveryState();
        vm.assertEq(recovery, notary, "recovery");
        vm.assertEq(delay, DELAY, "delay");
        vm.assertEq(pending, Proving.hashOf(config), "pending");
        vm.assertEq(readyAt, block.timestamp + DELAY, "readyAt");
    }
}
