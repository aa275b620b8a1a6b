// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice The functions of a contract that forge calls in sequences.
struct Selected {
    address addr;
    bytes4[] selectors;
}

/// @notice Restricts forge to calls of these functions.
abstract contract Targets {
    Selected[] private _selected;

    function _target(address handler) internal returns (Selected storage selected) {
        selected = _selected.push();
        selected.addr = handler;
    }

    function targetContracts() external view returns (address[] memory contracts) {
        contracts = new address[](_selected.length);
        for (uint256 i = 0; i < contracts.length; ++i) contracts[i] = _selected[i].addr;
    }

    function targetSelectors() external view returns (Selected[] memory) {
        return _selected;
    }
}
