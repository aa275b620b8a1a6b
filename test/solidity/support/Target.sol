// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice Call target of wallets in these tests.
contract Target {
    event Noted(address caller, uint256 number, uint256 value);

    uint256 public notes;

    function note(uint256 number) external payable {
        ++notes;
        emit Noted(msg.sender, number, msg.value);
    }

    function echo(bytes calldata data) external pure returns (bytes memory) {
        return data;
    }

    function fail(bytes calldata data) external pure {
        bytes memory copy = data;
        assembly ("memory-safe") {
            revert(add(copy, 32), mload(copy))
        }
    }

    receive() external payable {}
}
