// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {OwnedInTwoSteps} from "../../../contracts/src/OwnedInTwoSteps.sol";
import {Suite} from "./Suite.sol";
import {vm} from "./Vm.sol";

/// @notice A contract of the suite that has an owner.
abstract contract OwnedTest is Suite {
    event OwnershipTransferStarted(address indexed previousOwner, address indexed newOwner);
    event OwnershipTransferred(address indexed previousOwner, address indexed newOwner);

    function _owned() internal view virtual returns (OwnedInTwoSteps);

    function _firstOwner() internal view virtual returns (address) {
        return owner;
    }

    function _unauthorized(address caller) internal pure returns (bytes memory) {
        return abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, caller);
    }

    function _name(address successor) internal {
        OwnedInTwoSteps owned = _owned();
        vm.prank(_firstOwner());
        owned.transferOwnership(successor);
    }
}

abstract contract OwnerTest is OwnedTest {
    function test_it_is_the_one_of_the_constructor() external view {
        vm.assertEq(_owned().owner(), _firstOwner(), "owner");
    }

    function testFuzz_it_is_the_successor_once_he_has_accepted(address successor) external {
        vm.assume(successor != address(0));
        _name(successor);
        vm.assertEq(_owned().owner(), _firstOwner(), "named only");
        OwnedInTwoSteps owned = _owned();
        vm.prank(successor);
        owned.acceptOwnership();
        vm.assertEq(owned.owner(), successor, "accepted");
    }
}

abstract contract PendingOwnerTest is OwnedTest {
    function testFuzz_it_is_who_was_named_until_the_transfer_is_over(address successor) external {
        vm.assume(successor != address(0));
        OwnedInTwoSteps owned = _owned();
        vm.assertEq(owned.pendingOwner(), address(0), "nobody at first");
        _name(successor);
        vm.assertEq(owned.pendingOwner(), successor, "named");
        vm.prank(successor);
        owned.acceptOwnership();
        vm.assertEq(owned.pendingOwner(), address(0), "nobody afterwards");
    }
}

abstract contract TransferOwnershipTest is OwnedTest {
    function testFuzz_names_a_successor_and_changes_no_owner(address successor) external {
        OwnedInTwoSteps owned = _owned();
        vm.expectEmit(address(owned));
        emit OwnershipTransferStarted(_firstOwner(), successor);
        _name(successor);
        vm.assertEq(owned.owner(), _firstOwner(), "owner");
        vm.assertEq(owned.pendingOwner(), successor, "pending owner");
    }

    function test_the_zero_address_takes_a_naming_back() external {
        _name(stranger);
        _name(address(0));
        OwnedInTwoSteps owned = _owned();
        vm.prank(stranger);
        vm.expectRevert(_unauthorized(stranger));
        owned.acceptOwnership();
    }

    function testFuzz_only_the_owner_may_call(address caller, address successor) external {
        vm.assume(caller != _firstOwner());
        OwnedInTwoSteps owned = _owned();
        vm.prank(caller);
        vm.expectRevert(_unauthorized(caller));
        owned.transferOwnership(successor);
    }
}

abstract contract AcceptOwnershipTest is OwnedTest {
    function testFuzz_the_named_successor_becomes_the_owner(address successor) external {
        vm.assume(successor != address(0) && successor != _firstOwner());
        OwnedInTwoSteps owned = _owned();
        _name(successor);
        vm.expectEmit(address(owned));
        emit OwnershipTransferred(_firstOwner(), successor);
        vm.prank(successor);
        owned.acceptOwnership();
        vm.assertEq(owned.owner(), successor, "owner");
        address former = _firstOwner();
        vm.prank(former);
        vm.expectRevert(_unauthorized(former));
        owned.transferOwnership(former);
    }

    function testFuzz_nobody_else_may_accept(address caller) external {
        vm.assume(caller != stranger && caller != address(0));
        OwnedInTwoSteps owned = _owned();
        vm.prank(caller);
        vm.expectRevert(_unauthorized(caller));
        owned.acceptOwnership();
        _name(stranger);
        vm.prank(caller);
        vm.expectRevert(_unauthorized(caller));
        owned.acceptOwnership();
    }
}

abstract contract RenounceOwnershipTest is OwnedTest {
    function testFuzz_it_always_reverts_whoever_calls(address caller) external {
        OwnedInTwoSteps owned = _owned();
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(OwnedInTwoSteps.OwnershipCannotBeRenounced.selector));
        owned.renounceOwnership();
        address current = _firstOwner();
        vm.prank(current);
        vm.expectRevert(abi.encodeWithSelector(OwnedInTwoSteps.OwnershipCannotBeRenounced.selector));
        owned.renounceOwnership();
        vm.assertEq(owned.owner(), current, "owner");
    }
}
