// SPDX-License-Identifier: MIT
pragma solidity ^0.8.4;

import {ERC4337} from "solady/src/accounts/ERC4337.sol";

/// @notice Solady's abstract ERC4337 with what it leaves open: a name of its EIP-712 domain, and the EntryPoint.
contract SoladyAccount is ERC4337 {
    address private immutable ENTRY_POINT;

    constructor(address entryPoint_) {
        ENTRY_POINT = entryPoint_;
    }

    function entryPoint() public view override returns (address) {
        return ENTRY_POINT;
    }

    function _domainNameAndVersion() internal pure override returns (string memory, string memory) {
        return ("SoladyAccount", "1");
    }
}
