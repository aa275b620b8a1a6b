// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {Frames} from "./Frames.sol";
import {StateReader} from "./StateReader.sol";

/// @notice A call of foreign code, and its expected result.
/// @param target the called address
/// @param data its calldata
/// @param used the expected gas; 0 for any
/// @param digest keccak256 of the expected return data; 0 for any
struct Task {
    address target;
    bytes data;
    uint256 used;
    bytes32 digest;
}

/// @notice Outcome of a call.
/// @param starved there was too little gas to try it
/// @param ok it succeeded
/// @param used its gas, as its caller pays it
/// @param limit the least gas found with which it behaves the same
/// @param data its answer, cut to a bound
struct Outcome {
    bool starved;
    bool ok;
    uint256 used;
    uint256 limit;
    bytes data;
}

/// @title Calls foreign code with the least gas with which it behaves as with plenty
/// @dev A call may need more gas than it uses: a nested call gets 63/64 of the rest (EIP-150), a transfer of value needs
/// 2,300 in hand, and code may read `gasleft()`. With less gas, code may also take another path and succeed. So every
/// limit is tried on the state on which the call will run. It holds when the call succeeds, returns the same data and
/// uses the same gas: another path uses another amount.
abstract contract LimitSearch is StateReader {
    /// @dev Gas to report the outcome of an attempt.
    uint256 private constant TELLING = 20_000;

    /// @dev Limits tried between the bounds of a search.
    uint256 private constant TRIALS = 16;

    /// @dev True when the probes grant final limits: skips the search.
    bool internal transient declared;

    /// @notice Tries a task with `limit` gas. Only for the lens itself. With `keep`, returns, and so keeps the effects, if
    /// the call matches the task. Otherwise reverts with the outcome, or with empty data for lack of gas.
    function attempt(Task calldata task, uint256 limit, uint256 cap, bool keep) external internalOnly {
        bytes memory data = task.data;
        if (!Frames.affords(limit, TELLING)) Frames.revertWith("");
        (bool ok, uint256 used,) = Frames.call(task.target, limit, data);
        bytes memory answer = Frames.returned(Frames.DATA_CAP);
        bytes32 digest = keccak256(answer);
        if (keep && ok && _same(task.used, uint256(used)) && _same(uint256(task.digest), uint256(digest))) return;
        if (answer.length > cap) {
            assembly ("memory-safe") {
                mstore(answer, cap)
            }
        }
        Frames.revertWith(abi.encode(ok, used, digest, answer));
    }

    /// @dev Runs a call with the least gas at which it behaves as with `grant`; with `grant` itself when limits are declared.
    /// Two executions when it needs little more than it uses, and at most TRIALS + 5.
    function _runLeast(address target, uint256 grant, bytes memory data, uint256 cap)
        internal
        returns (Outcome memory seen)
    {
        if (declared) {
            (seen.ok, seen.used,) = Frames.call(target, grant, data);
            seen.limit = grant;
            seen.data = Frames.returned(cap);
            return seen;
        }
        Task memory task = Task(target, data, 0, 0);
        (, bytes memory result) = address(this).call(abi.encodeCall(this.attempt, (task, grant, cap, false)));
        if (result.length == 0) {
            seen.starved = true;
            return seen;
        }
        (seen.ok, seen.used, task.digest, seen.data) = abi.decode(result, (bool, uint256, bytes32, bytes));
        seen.limit = seen.used;
        if (!seen.ok) return seen;
        task.used = seen.used;
        seen.limit = Math.min(_little(seen.used), grant);
        if (_keeps(task, seen.limit)) return seen;
        seen.limit = _search(task, grant);
        seen.starved = !_keeps(task, seen.limit);
    }

    /// @dev Enough for a call that calls others a few times, and sends no value.
    function _little(uint256 used) private pure returns (uint256) {
        return used + used / 64;
    }

    /// @dev The least limit, to one part in 64, above `_little`, which is known not to suffice. Drops an expectation (gas,
    /// return data) that varies with the limit itself.
    function _search(Task memory task, uint256 grant) private returns (uint256 high) {
        uint256 low = _little(task.used);
        high = task.used + task.used / 8 + 5_000;
        if (high >= grant || !_does(task, high)) {
            low = Math.min(high, grant);
            high = grant;
            uint256 less = grant - grant / 16;
            (bool ok, uint256 used, bytes32 digest) = _try(task, less);
            if (ok) {
                if (used != task.used) {
                    task.used = 0;
                    low = 2_000;
                } else if (digest != task.digest) {
                    low = used - used / 16;
                }
                if (digest != task.digest) task.digest = 0;
                high = less;
                low = Math.min(low, high);
            }
        }
        for (uint256 i = 0; i < TRIALS && high - low > high / 64; i++) {
            uint256 middle = Math.sqrt(low * high);
            if (_does(task, middle)) high = middle;
            else low = middle;
        }
    }

    function _same(uint256 wanted, uint256 found) private pure returns (bool) {
        return wanted == 0 || wanted == found;
    }

    /// @dev Whether the call matches the task within `limit`; its effects are undone.
    function _does(Task memory task, uint256 limit) private returns (bool) {
        (bool ok, uint256 used, bytes32 digest) = _try(task, limit);
        return ok && _same(task.used, used) && _same(uint256(task.digest), uint256(digest));
    }

    /// @dev Outcome of the call within `limit`; `ok` is also false when there is too little gas to try.
    function _try(Task memory task, uint256 limit) private returns (bool ok, uint256 used, bytes32 digest) {
        uint256 free = _free();
        (, bytes memory result) = address(this).call(abi.encodeCall(this.attempt, (task, limit, 0, false)));
        if (result.length != 0) (ok, used, digest) = abi.decode(result, (bool, uint256, bytes32));
        _release(free);
    }

    /// @dev Runs the call within `limit`, and undoes it unless it matches the task.
    function _keeps(Task memory task, uint256 limit) private returns (bool kept) {
        uint256 free = _free();
        (kept,) = address(this).call(abi.encodeCall(this.attempt, (task, limit, 0, true)));
        _release(free);
    }

    function _free() internal pure returns (uint256 free) {
        assembly ("memory-safe") {
            free := mload(0x40)
        }
    }

    /// @dev Moves `data` down to `free`, where it is the last thing in memory.
    function _last(bytes memory data, uint256 free) internal pure returns (bytes memory moved) {
        assembly ("memory-safe") {
            let size := mload(data)
            mcopy(free, data, add(size, 32))
            mstore(0x40, and(add(add(free, size), 63), not(31)))
            moved := free
        }
    }

    /// @dev Frees the memory of an attempt: calldata of many attempts would fill it.
    function _release(uint256 free) private pure {
        assembly ("memory-safe") {
            mstore(0x40, free)
        }
    }
}
