// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable, Ownable2Step} from "@openzeppelin/contracts/access/Ownable2Step.sol";
import {UpgradeableBeacon} from "@openzeppelin/contracts/proxy/beacon/UpgradeableBeacon.sol";
import {OwnedInTwoSteps} from "./OwnedInTwoSteps.sol";

/// @title WalletBeacon
/// @notice Names the implementation of every wallet. Its owner can replace the code of all wallets with one transaction.
/// @dev OpenZeppelin's beacon with the ownership of {OwnedInTwoSteps}; every function below only picks the latter.
contract WalletBeacon is UpgradeableBeacon, OwnedInTwoSteps {
    /// @param implementation The first implementation: a contract that has code.
    /// @param owner The only account that may call {upgradeTo} and name its successor; not the zero address.
    constructor(address implementation, address owner) UpgradeableBeacon(implementation, owner) {}

    /// @notice Names a successor, who becomes the owner by calling {acceptOwnership}. Only for the owner.
    /// @param newOwner The successor; the zero address takes back an earlier naming.
    function transferOwnership(address newOwner) public override(Ownable, Ownable2Step) {
        Ownable2Step.transferOwnership(newOwner);
    }

    /// @notice Always reverts: the beacon always has an owner.
    function renounceOwnership() public override(Ownable, OwnedInTwoSteps) {
        OwnedInTwoSteps.renounceOwnership();
    }

    /// @dev The last step of both transfers: by the constructor and by {acceptOwnership}.
    function _transferOwnership(address newOwner) internal override(Ownable, Ownable2Step) {
        Ownable2Step._transferOwnership(newOwner);
    }
}
