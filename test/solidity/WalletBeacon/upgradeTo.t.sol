// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {UpgradeableBeacon} from "@openzeppelin/contracts/proxy/beacon/UpgradeableBeacon.sol";
import {Config} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract AnotherImplementation {
    function answer() external pure returns (uint256) {
        return 42;
    }
}

contract UpgradeToTest is WalletTest {
    event Upgraded(address indexed implementation);

    function test_every_wallet_has_the_new_code_at_once_and_keeps_its_balance() external {
        (Wallet wallet,) = _ecdsaWallet(1);
        AnotherImplementation another = new AnotherImplementation();
        vm.expectEmit(address(beacon));
        emit Upgraded(address(another));
        vm.prank(beaconOwner);
        beacon.upgradeTo(address(another));
        vm.assertEq(beacon.implementation(), address(another), "implementation");
        vm.assertEq(AnotherImplementation(address(wallet)).answer(), 42, "the new code answers");
        vm.assertEq(address(wallet).balance, FUNDS, "balance");
    }

    function test_a_way_back_finds_the_configuration_as_it_was() external {
        (Wallet wallet,) = _ecdsaWallet(1);
        (Config memory before,) = wallet.configuration();
        AnotherImplementation another = new AnotherImplementation();
        vm.prank(beaconOwner);
        beacon.upgradeTo(address(another));
        vm.prank(beaconOwner);
        beacon.upgradeTo(address(implementation));
        (Config memory afterwards,) = wallet.configuration();
        vm.assertEq(abi.encode(afterwards), abi.encode(before), "configuration");
    }

    function testFuzz_an_implementation_has_code(address empty) external {
        vm.assume(empty.code.length == 0);
        vm.prank(beaconOwner);
        vm.expectRevert(abi.encodeWithSelector(UpgradeableBeacon.BeaconInvalidImplementation.selector, empty));
        beacon.upgradeTo(empty);
    }

    function testFuzz_only_the_owner_may_call(address caller) external {
        vm.assume(caller != beaconOwner);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, caller));
        beacon.upgradeTo(address(ledger));
    }

    function test_who_was_named_owner_may_not_call_before_he_accepts() external {
        vm.prank(beaconOwner);
        beacon.transferOwnership(stranger);
        vm.prank(stranger);
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, stranger));
        beacon.upgradeTo(address(ledger));
    }
}
