// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {SponsorPaymaster} from "../../../contracts/src/SponsorPaymaster.sol";
import {IEntryPointCommon, Ops, Version} from "./Ops.sol";
import {Suite} from "./Suite.sol";
import {vm} from "./Vm.sol";

/// @notice What the functions of the paymaster that name an EntryPoint have in common.
abstract contract PaymasterTest is Suite {
    function _of(address entryPoint) internal view returns (IEntryPointCommon.DepositInfo memory) {
        return IEntryPointCommon(entryPoint).getDepositInfo(address(paymaster));
    }

    function _stake(address entryPoint, uint256 value, uint32 delay) internal {
        vm.deal(owner, value);
        vm.prank(owner);
        paymaster.addStake{value: value}(entryPoint, delay);
    }

    function _isNone(address other) internal pure {
        vm.assume(other != Ops.ENTRY_POINT_V06 && other != Ops.ENTRY_POINT_V07 && other != Ops.ENTRY_POINT_V08);
    }

    function _expectUnknown(address other) internal {
        vm.expectRevert(abi.encodeWithSelector(SponsorPaymaster.UnknownEntryPoint.selector, other));
    }

    function _expectUnauthorized(address caller) internal {
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, caller));
    }
}
