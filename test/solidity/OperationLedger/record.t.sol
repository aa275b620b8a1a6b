// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OperationLedger} from "../../../contracts/src/OperationLedger.sol";
import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

/// @notice Records and asks in one transaction, as the operations of a bundle do.
contract Recorder {
    function recordThenRequire(OperationLedger ledger, bytes32 key, address wallet, bytes32 asked) external {
        ledger.record(key);
        ledger.requireRecorded(wallet, asked);
    }

    function record(OperationLedger ledger, bytes32 key) external {
        ledger.record(key);
    }

    function recordInAFrameThatReverts(OperationLedger ledger, bytes32 key) external {
        try this.recordAndRevert(ledger, key) {} catch {}
        ledger.requireRecorded(address(this), key);
    }

    function recordAndRevert(OperationLedger ledger, bytes32 key) external {
        ledger.record(key);
        revert();
    }
}

contract RecordTest is Suite {
    Recorder private recorder;

    function setUp() public override {
        super.setUp();
        recorder = new Recorder();
    }

    function testFuzz_a_record_holds_for_the_rest_of_the_transaction(bytes32 key) external {
        recorder.recordThenRequire(ledger, key, address(recorder), key);
    }

    function testFuzz_a_record_is_gone_with_its_transaction(bytes32 key) external {
        recorder.record(ledger, key);
        vm.expectRevert(abi.encodeWithSelector(OperationLedger.DependencyFailed.selector, key));
        ledger.requireRecorded(address(recorder), key);
    }

    function testFuzz_nobody_can_record_for_another_wallet(bytes32 key, address wallet) external {
        vm.assume(wallet != address(recorder));
        vm.expectRevert(abi.encodeWithSelector(OperationLedger.DependencyFailed.selector, key));
        recorder.recordThenRequire(ledger, key, wallet, key);
    }

    function testFuzz_a_record_is_of_one_key(bytes32 key, bytes32 other) external {
        vm.assume(key != other);
        vm.expectRevert(abi.encodeWithSelector(OperationLedger.DependencyFailed.selector, other));
        recorder.recordThenRequire(ledger, key, address(recorder), other);
    }

    function testFuzz_a_record_is_rolled_back_with_the_call_that_made_it(bytes32 key) external {
        vm.expectRevert(abi.encodeWithSelector(OperationLedger.DependencyFailed.selector, key));
        recorder.recordInAFrameThatReverts(ledger, key);
    }
}
