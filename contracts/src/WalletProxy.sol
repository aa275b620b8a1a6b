// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title WalletProxy
/// @notice Beacon proxy of a wallet. Delegates every call to the implementation that its beacon names; a call without
/// data stops immediately and takes the value, without reading the beacon, so that 2,300 gas suffice.
/// @dev Its creation code is part of the address of every wallet: a changed byte here changes them all.
/// The beacon is a constant of the code, not a storage slot, which makes the proxy cheap to create and leaves the wallet's
/// storage entirely to the implementation. The event informs explorers as an ERC-1967 slot would.
///
/// Every byte of the runtime costs 200 gas at every creation, so the constructor returns 81 bytes that are written by
/// hand. `at` is the offset in bytes; the stack is shown with its top on the right:
///
///   at  bytes                          what they do                                       stack afterwards
///    0  36 6005 57 00                  CALLDATASIZE: jump to 5, or STOP
///    5  5b 63 5c60da1b 5f 52           MSTORE(0, selector of implementation())
///   13  6020 5f 6004 601c              output: 32 bytes at 0; input: 4 bytes at 28         32 0 4 28
///   20  73 beacon 5a fa                STATICCALL(GAS, beacon, 28, 4, 0, 32)               ok
///   43  601f 3d 11 16                  and RETURNDATASIZE > 31                             named
///   48  80 15 6042 57                  if not: jump to 66, with a zero                     named
///   53  5f 51                          MLOAD(0)                                            named impl
///   55  36 5f 5f 37                    CALLDATACOPY(0, 0, CALLDATASIZE)                    named impl
///   59  5f 5f 36 5f 84 5a f4           DELEGATECALL(GAS, impl, 0, CALLDATASIZE, 0, 0)      named impl done
///   66  5b 3d 5f 5f 3e                 RETURNDATACOPY(0, 0, RETURNDATASIZE)                ... done
///   71  604d 57                        done: jump to 77                                    ...
///   74  3d 5f fd                       REVERT(0, RETURNDATASIZE)
///   77  5b 3d 5f f3                    RETURN(0, RETURNDATASIZE)
contract WalletProxy {
    /// @notice ERC-1967: the beacon of this proxy, emitted once, at its creation. It never changes.
    /// @param beacon The contract whose `implementation()` every call with data reads.
    event BeaconUpgraded(address indexed beacon);

    /// @notice The beacon has no code, or names an implementation that has none.
    /// @param beacon The address that was given as the beacon.
    error InvalidBeacon(address beacon);
    /// @notice Value was sent to the constructor without a call that could take it.
    error NonPayable();

    /// @param beacon Contract whose `implementation()` every call reads.
    /// @param data When not empty: delegated to the implementation once, its failure is the deployment's.
    constructor(address beacon, bytes memory data) payable {
        address implementation;
        assembly ("memory-safe") {
            mstore(0, 0x5c60da1b) // implementation()
            // Arguments are evaluated from the last to the first: the call comes before its returndatasize.
            if and(gt(returndatasize(), 31), staticcall(gas(), beacon, 28, 4, 0, 32)) {
                implementation := mload(0)
            }
        }
        if (implementation.code.length == 0) revert InvalidBeacon(beacon);
        emit BeaconUpgraded(beacon);
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
        assembly {
            // The constructor ends here: memory may be overwritten from 0 on. Each word overlaps the end of the one before.
            mstore(0, shl(88, 0x36600557005b635c60da1b5f5260205f6004601c73)) // 0 to 20
            mstore(21, shl(96, beacon)) // 21 to 40
            mstore(41, 0x5afa601f3d111680156042575f51365f5f375f5f365f845af45b3d5f5f3e604d) // 41 to 72
            mstore(73, shl(192, 0x573d5ffd5b3d5ff3)) // 73 to 80
            return(0, 81)
        }
    }
}
