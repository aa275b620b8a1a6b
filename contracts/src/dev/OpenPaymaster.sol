// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {PackedUserOperation} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {UserOperationV06} from "../Types.sol";

/// @title A paymaster that pays for every op, for development chains and tests
/// @notice Without data it only accepts. With any data it also has a postOp, which records the wallet's cost, as a
/// paymaster that bills its users would.
/// @dev Serves every EntryPoint: anyone can spend its deposits.
contract OpenPaymaster {
    /// @notice Wei that each wallet has cost.
    mapping(address wallet => uint256 wei_) public spent;

    /// @notice Accepts an operation of v0.7 or v0.8.
    function validatePaymasterUserOp(PackedUserOperation calldata userOp, bytes32, uint256)
        external
        pure
        returns (bytes memory context, uint256 validationData)
    {
        if (userOp.paymasterAndData.length > 52) context = abi.encode(userOp.sender);
        return (context, validationData);
    }

    /// @notice Accepts an operation of v0.6.
    function validatePaymasterUserOp(UserOperationV06 calldata userOp, bytes32, uint256)
        external
        pure
        returns (bytes memory context, uint256 validationData)
    {
        if (userOp.paymasterAndData.length > 20) context = abi.encode(userOp.sender);
        return (context, validationData);
    }

    /// @notice postOp of v0.7 and v0.8.
    function postOp(uint8, bytes calldata context, uint256 actualGasCost, uint256) external {
        spent[abi.decode(context, (address))] += actualGasCost;
    }

    /// @notice postOp of v0.6.
    function postOp(uint8, bytes calldata context, uint256 actualGasCost) external {
        spent[abi.decode(context, (address))] += actualGasCost;
    }
}
