// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";

/// @title OwnedInTwoSteps
/// @notice A contract with an owner, who names a successor, who then accepts. There is always an owner.
/// @dev A contract that derives from this one names the first owner in its constructor: never the zero address.
abstract contract OwnedInTwoSteps is Ownable2Step {
    /// @notice {renounceOwnership} was called: the contract always has an owner.
    error OwnershipCannotBeRenounced();

    /// @notice Always reverts with {OwnershipCannotBeRenounced}.
    /// @dev Only an owner can replace a lost deployer, a lost sponsor or a faulty implementation.
    function renounceOwnership() public virtual override {
        revert OwnershipCannotBeRenounced();
    }
}
