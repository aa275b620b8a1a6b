// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OwnedInTwoSteps} from "../../../contracts/src/OwnedInTwoSteps.sol";
import {TransferOwnershipTest} from "../support/Ownership.sol";

contract WalletFactoryTransferOwnershipTest is TransferOwnershipTest {
    function _owned() internal view override returns (OwnedInTwoSteps) {
        return OwnedInTwoSteps(address(factory));
    }
}
