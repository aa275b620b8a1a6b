// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Calls whose success depends on their gas limit, for development chains
/// @notice Each call needs more gas than it uses, or takes another path with less.
contract GasGuard {
    /// @notice `left` gas was left, less than `needed`.
    error TooLittleGas(uint256 needed, uint256 left);

    /// @notice A forwarded call failed.
    error ForwardFailed(bytes data);

    /// @notice Number of complete runs of each function.
    uint256 public done;

    /// @notice Number of inner calls that failed without a revert here.
    uint256 public missed;

    /// @notice Counts, if enough gas is left.
    /// @param least gas that must be left
    function guarded(uint256 least) public {
        uint256 left = gasleft();
        if (left < least) revert TooLittleGas(least, left);
        done++;
    }

    /// @notice Counts at the end of `depth` calls of itself, each with 63/64 of its caller's gas (EIP-150).
    /// @param depth number of nested calls
    /// @param least gas that must be left in the innermost
    function nested(uint256 depth, uint256 least) external {
        if (depth == 0) guarded(least);
        else this.nested(depth - 1, least);
    }

    /// @notice Calls as a forwarder of meta-transactions does: with exactly `gas`, and not with less.
    /// @param gas gas limit of the inner call
    /// @param least gas that must be left inside
    function forwarded(uint256 gas, uint256 least) external {
        (bool ok, bytes memory data) = address(this).call{gas: gas}(abi.encodeCall(this.guarded, (least)));
        // A caller that holds back gas must not make the inner call fail: it would have had 63 of 64 parts.
        if (gasleft() < gas / 63) revert TooLittleGas(gas / 63, gasleft());
        if (!ok) revert ForwardFailed(data);
    }

    /// @notice Counts in `missed`, and does not revert, when the inner call has too little gas.
    /// @param least gas that must be left inside
    function attempted(uint256 least) external {
        try this.guarded(least) {}
        catch {
            missed++;
        }
    }

    /// @notice Likewise with inner work that uses up gas: writes `rounds` new slots.
    /// @param rounds number of slots
    function attemptedWork(uint256 rounds) external {
        try this.work(rounds) {
            done++;
        } catch {
            missed++;
        }
    }

    /// @notice Slots of `work`.
    mapping(uint256 index => uint256 value) public slots;

    /// @notice Writes `rounds` slots.
    /// @param rounds number of slots
    function work(uint256 rounds) external {
        for (uint256 i = 0; i < rounds; i++) {
            slots[i] = block.number + 1;
        }
    }

    /// @notice Counts, and returns the gas left: no two limits return the same value.
    /// @return left gas
    function told() external returns (uint256 left) {
        done++;
        left = gasleft();
    }
}
