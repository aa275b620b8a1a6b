// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {UpgradeableBeacon} from "@openzeppelin/contracts/proxy/beacon/UpgradeableBeacon.sol";
import {WalletBeacon} from "../../../contracts/src/WalletBeacon.sol";
import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

contract ConstructorTest is Suite {
    function test_an_implementation_has_code() external {
        bytes memory initCode = bytes.concat(_code("WalletBeacon"), abi.encode(stranger, owner));
        vm.expectRevert(abi.encodeWithSelector(UpgradeableBeacon.BeaconInvalidImplementation.selector, stranger));
        _create(initCode, 0);
    }

    function test_an_owner_is_not_the_zero_address() external {
        bytes memory initCode = bytes.concat(_code("WalletBeacon"), abi.encode(implementation, address(0)));
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableInvalidOwner.selector, address(0)));
        _create(initCode, 0);
    }

    function testFuzz_it_takes_both_from_its_arguments(address first) external {
        vm.assume(first != address(0));
        WalletBeacon made = WalletBeacon(_create("WalletBeacon", abi.encode(ledger, first)));
        vm.assertEq(made.owner(), first, "owner");
        vm.assertEq(made.implementation(), address(ledger), "implementation");
    }
}
