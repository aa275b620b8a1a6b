// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Several calls in one, for development chains
/// @notice Speaks the part of Multicall3's interface that reads need. Public chains have Multicall3 itself at
/// 0xcA11bde05977b3631167028862bE2a173976CA11; a development chain has this code there.
contract Multicall {
    /// @notice One call.
    struct Call3 {
        address target;
        bool allowFailure;
        bytes callData;
    }

    /// @notice Outcome of one call: its return data, or its revert data.
    struct Result {
        bool success;
        bytes returnData;
    }

    /// @notice A call failed that was not allowed to.
    error CallFailed(uint256 index);

    /// @notice Makes the calls in order, each with all the gas that may be passed on.
    /// @param calls the calls; a failed call without `allowFailure` reverts all of them
    /// @return results in the order of the calls
    function aggregate3(Call3[] calldata calls) external payable returns (Result[] memory results) {
        results = new Result[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            (bool success, bytes memory returnData) = calls[i].target.call(calls[i].callData);
            if (!success && !calls[i].allowFailure) revert CallFailed(i);
            results[i] = Result(success, returnData);
        }
    }
}
