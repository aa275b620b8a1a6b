// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ERC20} from "@openzeppelin/contracts/token/ERC20/ERC20.sol";

/// @title An ERC-20 for development chains
/// @notice Anyone may mint. 18 decimals.
contract TestToken is ERC20 {
    constructor() ERC20("Castellan Test Token", "CTT") {}

    /// @notice Mints new tokens.
    /// @param to recipient
    /// @param amount in the smallest unit
    function mint(address to, uint256 amount) external {
        _mint(to, amount);
    }
}
