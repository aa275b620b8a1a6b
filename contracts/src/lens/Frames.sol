// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Calls of foreign code, and the gas that they are granted
library Frames {
    /// @notice Bytes of return data kept for one probe.
    uint256 internal constant DATA_CAP = 16_384;

    /// @notice Gas that the lens keeps for itself when it grants gas to foreign code: in any frame, and for each op
    /// of the list in the frames that answer for all of them.
    uint256 internal constant RESERVE = 100_000;
    uint256 private constant RESERVE_EACH = 30_000;

    /// @notice Gas that a frame keeps for itself which answers for `ops` ops.
    function reserveFor(uint256 ops) internal pure returns (uint256) {
        return RESERVE + RESERVE_EACH * ops;
    }

    /// @notice Whether a frame can be given `limit` gas here (EIP-150 keeps back one part in 64), with `reserve` left.
    function affords(uint256 limit, uint256 reserve) internal view returns (bool) {
        return limit < type(uint128).max && (gasleft() * 63) / 64 > limit + reserve;
    }

    /// @notice Calls `target`, and copies only the first word of the answer.
    /// @return ok whether it succeeded
    /// @return used gas of the call as its caller pays it
    /// @return word the first word of the return data or revert data, zero-padded
    function call(address target, uint256 limit, bytes memory data)
        internal
        returns (bool ok, uint256 used, uint256 word)
    {
        assembly ("memory-safe") {
            mstore(0, 0)
            used := gas()
            ok := call(limit, target, 0, add(data, 32), mload(data), 0, 32)
            used := sub(used, gas())
            word := mload(0)
        }
    }

    /// @notice The return data of the last call, at most `cap` bytes of it.
    function returned(uint256 cap) internal pure returns (bytes memory data) {
        assembly ("memory-safe") {
            let size := returndatasize()
            if gt(size, cap) { size := cap }
            data := mload(0x40)
            mstore(data, size)
            returndatacopy(add(data, 32), 0, size)
            mstore(0x40, and(add(add(data, size), 63), not(31)))
        }
    }

    /// @notice Bytes that the last call returned.
    function returnedSize() internal pure returns (uint256 size) {
        assembly ("memory-safe") {
            size := returndatasize()
        }
    }

    /// @notice Ends the frame and undoes it; `data` is its answer. A revert also resets the warm accounts and slots
    /// (EIP-2929), so that a read does not make later measurements cheaper.
    function revertWith(bytes memory data) internal pure {
        assembly ("memory-safe") {
            revert(add(data, 32), mload(data))
        }
    }
}
