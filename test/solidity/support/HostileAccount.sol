// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {PackedUserOperation} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {UserOperationV06} from "../../../contracts/src/Types.sol";

/// @notice A foreign account that agrees to everything and makes any requested call, in the middle of a bundle.
contract HostileAccount {
    function validateUserOp(PackedUserOperation calldata, bytes32, uint256) external pure returns (uint256) {
        return 0;
    }

    function validateUserOp(UserOperationV06 calldata, bytes32, uint256) external pure returns (uint256) {
        return 0;
    }

    function run(address target, bytes calldata data) external {
        (bool success,) = target.call(data);
        success;
    }

    receive() external payable {}
}
