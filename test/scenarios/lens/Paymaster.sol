// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice A paymaster that sponsors every op and uses nearly all gas of its postOp.
contract Paymaster {
    bytes4 private constant POST_OP_V06 = bytes4(keccak256("postOp(uint8,bytes,uint256)"));
    bytes4 private constant POST_OP = bytes4(keccak256("postOp(uint8,bytes,uint256,uint256)"));

    receive() external payable {}

    /// @dev validatePaymasterUserOp of any version: a context, and valid for ever.
    fallback() external {
        if (msg.sig == POST_OP || msg.sig == POST_OP_V06) {
            while (gasleft() > 2_000) {}
            return;
        }
        bytes memory answer = abi.encode(bytes("x"), uint256(0));
        assembly {
            return(add(answer, 32), mload(answer))
        }
    }
}
