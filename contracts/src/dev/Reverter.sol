// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title A contract that fails in every way, for development chains
/// @notice Each function fails in one way; `succeed` and `bump` are the two that do not.
contract Reverter {
    /// @notice A custom error with arguments.
    error Refused(address who, uint256 needed, uint256 had);

    /// @notice A custom error with dynamic arguments.
    error RefusedBecause(bytes32 id, string reason, uint256[] values);

    /// @notice A custom error without arguments.
    error JustRefused();

    /// @notice `succeed` was called.
    event Succeeded(address indexed caller, uint256 value, string note);

    /// @notice `bump` was called.
    event Bumped(bytes32 indexed id, uint256 count);

    /// @notice Number of calls of `bump` for an id.
    mapping(bytes32 id => uint256 count) public counts;

    uint256[] private _empty;

    /// @notice Takes value and succeeds.
    /// @param note goes into the event
    /// @return the value that came along
    function succeed(string calldata note) external payable returns (uint256) {
        emit Succeeded(msg.sender, msg.value, note);
        return msg.value;
    }

    /// @notice Counts its calls per id.
    /// @return count including this call
    function bump(bytes32 id) external returns (uint256 count) {
        count = ++counts[id];
        emit Bumped(id, count);
    }

    /// @notice Error(string).
    function failWithReason(string calldata reason) external pure {
        revert(reason);
    }

    /// @notice Reverts with no data at all.
    function failWithoutReason() external pure {
        require(false);
    }

    /// @notice Panic(0x01).
    function failAssert() external pure {
        assert(false);
    }

    /// @notice Panic(0x11) for every argument.
    function failOverflow(uint256 x) external pure returns (uint256) {
        return type(uint256).max - x + x + 1;
    }

    /// @notice Panic(0x12) when `divisor` is zero.
    function failDivision(uint256 divisor) external pure returns (uint256) {
        return 1 / divisor;
    }

    /// @notice Panic(0x32).
    function failIndex() external view returns (uint256) {
        return _empty[0];
    }

    /// @notice A custom error with the caller and the two amounts.
    function failCustom(uint256 needed, uint256 had) external view {
        revert Refused(msg.sender, needed, had);
    }

    /// @notice A custom error with dynamic arguments.
    function failCustomDynamic(bytes32 id, string calldata reason, uint256[] calldata values) external pure {
        revert RefusedBecause(id, reason, values);
    }

    /// @notice A custom error without arguments.
    function failCustomEmpty() external pure {
        revert JustRefused();
    }

    /// @notice Burns all its gas.
    function failOutOfGas() external pure {
        while (true) {}
    }

    /// @notice Reverts with `size` bytes, all 0xff.
    function failHuge(uint256 size) external pure {
        assembly ("memory-safe") {
            let start := mload(0x40)
            for { let i := 0 } lt(i, size) { i := add(i, 32) } { mstore(add(start, i), not(0)) }
            revert(start, size)
        }
    }

    /// @notice Reverts with exactly these bytes.
    function failRaw(bytes calldata data) external pure {
        bytes memory copy = data;
        assembly ("memory-safe") {
            revert(add(copy, 32), mload(copy))
        }
    }

    /// @notice Takes no value, and has no fallback: plain transfers fail too.
    function failOnValue() external pure {}
}
