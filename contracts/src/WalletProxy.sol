// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title WalletProxy
/// @notice Beacon proxy of a wallet. Delegates every call to the implementation that its beacon names.
/// @dev Its creation code is part of the address of every wallet: a changed byte here changes them all.
/// The beacon is an immutable of the code, not a storage slot, which makes the proxy cheap to create and
/// leaves the wallet's storage entirely to the implementation.
contract WalletProxy {
    address private immutable BEACON;

    /// @notice The beacon has no code, or names an implementation that has none.
    error InvalidBeacon(address beacon);
    /// @notice Value was sent to the constructor without a call that could take it.
    error NonPayable();

    /// @param beacon Contract whose `implementation()` is asked at every call.
    /// @param data When not empty: delegated to the implementation once, its failure is the deployment's.
    constructor(address beacon, bytes memory data) payable {
        BEACON = beacon;
        address implementation;
        assembly ("memory-safe") {
            mstore(0, 0x5c60da1b) // implementation()
            if and(gt(returndatasize(), 31), staticcall(gas(), beacon, 28, 4, 0, 32)) {
                implementation := mload(0)
            }
        }
        if (implementation.code.length == 0) revert InvalidBeacon(beacon);
        if (data.length > 0) {
            (bool success, ) = implementation.delegatecall(data);
            if (!success) {
                assembly ("memory-safe") {
                    let free := mload(0x40)
                    returndatacopy(free, 0, returndatasize())
                    revert(free, returndatasize())
                }
            }
        } else if (msg.value > 0) {
            revert NonPayable();
        }
    }

    /// @notice Takes plain value without reading the beacon, so that 2,300 gas suffice.
    receive() external payable {}

    /// @notice Everything else is the implementation's.
    fallback() external payable {
        address beacon = BEACON;
        assembly {
            // The whole call is handled here and never returns to Solidity: memory may be overwritten from 0 on.
            mstore(0, 0x5c60da1b)
            // Arguments are evaluated from the last to the first: the call comes before its returndatasize.
            if iszero(and(gt(returndatasize(), 31), staticcall(gas(), beacon, 28, 4, 0, 32))) {
                revert(0, 0)
            }
            let implementation := mload(0)
            calldatacopy(0, 0, calldatasize())
            let success := delegatecall(gas(), implementation, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            switch success
            case 0 {
                revert(0, returndatasize())
            }
            default {
                return(0, returndatasize())
            }
        }
    }
}
