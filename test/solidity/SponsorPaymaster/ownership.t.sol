// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OwnershipTest} from "../support/Ownership.sol";

contract SponsorPaymasterOwnershipTest is OwnershipTest {
    function _owned() internal view override returns (address, address) {
        return (address(paymaster), owner);
    }
}
