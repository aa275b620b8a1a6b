// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title A contract that makes a call chosen in advance, for tests of nested EntryPoints
/// @notice An operation that calls `run` only burns gas until a call is loaded: its simulation shows no harm.
contract Nester {
    /// @notice A loaded call was made.
    event Ran(bool success, bytes returned);

    address private _target;
    bytes private _data;

    /// @notice Chooses the call that `run` makes.
    function load(address target, bytes calldata data) external {
        (_target, _data) = (target, data);
    }

    /// @notice Makes the loaded call and ignores its failure; without one it burns the gas that the call would need.
    function run(uint256 gasToBurn) external payable {
        uint256 start = gasleft();
        if (_target == address(0)) {
            while (start - gasleft() < gasToBurn) {}
            return;
        }
        (bool success, bytes memory returned) = _target.call(_data);
        emit Ran(success, returned);
    }
}
