// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {OwnedInTwoSteps} from "../../../contracts/src/OwnedInTwoSteps.sol";
import {Suite} from "./Suite.sol";
import {vm} from "./Vm.sol";

/// @notice A contract of the suite that has an owner, who changes in two steps.
abstract contract OwnershipTest is Suite {
    event OwnershipTransferStarted(address indexed previousOwner, address indexed newOwner);
    event OwnershipTransferred(address indexed previousOwner, address indexed newOwner);

    OwnedInTwoSteps private owned;
    address private first;

    function _owned() internal view virtual returns (address contract_, address firstOwner);

    function setUp() public override {
        super.setUp();
        address contract_;
        (contract_, first) = _owned();
        owned = OwnedInTwoSteps(contract_);
    }

    function _unauthorized(address caller) private {
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, caller));
    }

    function _are(address owner_, address pending) private view {
        vm.assertEq(owned.owner(), owner_, "owner");
        vm.assertEq(owned.pendingOwner(), pending, "pending owner");
    }

    function testFuzz_a_successor_is_named_and_is_the_owner_once_he_has_accepted(address successor) external {
        vm.assume(successor != address(0) && successor != first);
        _are(first, address(0));
        vm.expectEmit(address(owned));
        emit OwnershipTransferStarted(first, successor);
        vm.prank(first);
        owned.transferOwnership(successor);
        _are(first, successor);
        vm.expectEmit(address(owned));
        emit OwnershipTransferred(first, successor);
        vm.prank(successor);
        owned.acceptOwnership();
        _are(successor, address(0));
        _unauthorized(first);
        owned.transferOwnership(first);
    }

    function test_the_zero_address_takes_a_naming_back() external {
        vm.prank(first);
        owned.transferOwnership(stranger);
        vm.prank(first);
        owned.transferOwnership(address(0));
        _unauthorized(stranger);
        owned.acceptOwnership();
    }

    function testFuzz_only_the_owner_names_and_only_who_is_named_accepts(address caller) external {
        vm.assume(caller != first && caller != stranger && caller != address(0));
        _unauthorized(caller);
        owned.transferOwnership(caller);
        _unauthorized(caller);
        owned.acceptOwnership();
        vm.prank(first);
        owned.transferOwnership(stranger);
        _unauthorized(caller);
        owned.acceptOwnership();
    }

    function testFuzz_nobody_renounces(address caller) external {
        address[2] memory callers = [caller, first];
        for (uint256 i = 0; i < 2; ++i) {
            vm.prank(callers[i]);
            vm.expectRevert(abi.encodeWithSelector(OwnedInTwoSteps.OwnershipCannotBeRenounced.selector));
            owned.renounceOwnership();
        }
        _are(first, address(0));
    }
}
