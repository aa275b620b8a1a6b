// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Wallet} from "../../../contracts/src/Wallet.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

/// @notice Stands behind the beacon: returns its calldata, or reverts with it.
contract Mirror {
    fallback(bytes calldata data) external payable returns (bytes memory) {
        if (data[0] == 0xff) {
            bytes memory failure = data;
            assembly ("memory-safe") {
                revert(add(failure, 32), mload(failure))
            }
        }
        return abi.encode(address(this), msg.sender, msg.value, data);
    }
}

contract RevertingBeacon {
    fallback() external {
        revert("no implementation");
    }
}

contract ShortBeacon {
    fallback() external {
        assembly {
            return(0, 31)
        }
    }
}

contract FallbackTest is WalletTest {
    Wallet private wallet;

    function setUp() public override {
        super.setUp();
        (wallet,) = _ecdsaWallet(1);
        Mirror mirror = new Mirror();
        vm.prank(beaconOwner);
        beacon.upgradeTo(address(mirror));
    }

    function testFuzz_every_call_with_data_is_the_implementations(address caller, uint64 value, bytes calldata data)
        external
    {
        vm.assume(data.length > 0 && data[0] != 0xff && caller != address(wallet));
        vm.deal(caller, value);
        vm.prank(caller);
        (bool success, bytes memory result) = address(wallet).call{value: value}(data);
        vm.assertTrue(success, "success");
        vm.assertEq(result, abi.encode(address(wallet), caller, value, data), "answer");
    }

    function testFuzz_a_revert_comes_through_unchanged(bytes calldata data) external {
        bytes memory failing = bytes.concat(hex"ff", data);
        (bool success, bytes memory result) = address(wallet).call(failing);
        vm.assertFalse(success, "failure");
        vm.assertEq(result, failing, "revert data");
    }

    function test_without_an_implementation_it_reverts() external {
        vm.etch(address(beacon), "");
        _reverts();
        vm.etch(address(beacon), address(new ShortBeacon()).code);
        _reverts();
        vm.etch(address(beacon), address(new RevertingBeacon()).code);
        _reverts();
    }

    function _reverts() private {
        (bool success,) = address(wallet).call(hex"01");
        vm.assertFalse(success, "failure");
    }
}
