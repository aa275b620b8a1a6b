// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title A contract that counts its calls per id, for tests of exactly-once execution
/// @notice `count` of an operation's unique id is the number of its executions.
contract Counter {
    /// @notice The call was meant to fail.
    error Refused(bytes32 id);

    /// @notice The gate was closed when the call was executed.
    error Closed(bytes32 id);

    /// @notice An id was counted.
    event Hit(bytes32 indexed id, address indexed caller, uint256 count);

    /// @notice Count of an id.
    mapping(bytes32 id => uint256) public count;

    /// @notice Whether `hitIfOpen` counts for calls of this gate.
    mapping(bytes32 gate => bool) public closed;

    /// @notice Counts the id.
    /// @return the count including this call
    function hit(bytes32 id) external payable returns (uint256) {
        return _hit(id);
    }

    /// @notice Counts the id, or fails while the gate is closed: a call that passes simulation can fail on the chain.
    /// @return the count including this call
    function hitIfOpen(bytes32 gate, bytes32 id) external payable returns (uint256) {
        if (closed[gate]) revert Closed(id);
        return _hit(id);
    }

    /// @notice Counts, then reverts: the count must not remain.
    function hitAndRevert(bytes32 id) external payable {
        _hit(id);
        revert Refused(id);
    }

    /// @notice Opens or closes a gate.
    function setClosed(bytes32 gate, bool value) external {
        closed[gate] = value;
    }

    /// @notice The counts of many ids.
    function counts(bytes32[] calldata ids) external view returns (uint256[] memory values) {
        values = new uint256[](ids.length);
        for (uint256 i = 0; i < ids.length; i++) values[i] = count[ids[i]];
    }

    function _hit(bytes32 id) private returns (uint256 total) {
        total = ++count[id];
        emit Hit(id, msg.sender, total);
    }
}
