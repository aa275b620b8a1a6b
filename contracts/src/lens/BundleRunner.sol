// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Frames} from "./Frames.sol";
import {Measure, Probe, Stage} from "./LensTypes.sol";
import {Outcome} from "./LimitSearch.sol";
import {OpValidator} from "./OpValidator.sol";

/// @title Runs a list of ops as `handleOps` would, in a frame whose effects are all undone
/// @dev Results live in the memory of frames that call the hostile code: only those frames can reach them.
abstract contract BundleRunner is OpValidator {
    /// @notice Runs a bundle: all validations first, each undone when it fails, then the calls of those that passed,
    /// in order. Only for the lens itself; always reverts, with the measures.
    function run(Probe[] calldata probes, address creator, uint256 cap) external internalOnly {
        Measure[] memory measures = new Measure[](probes.length);
        bytes[] memory contexts = new bytes[](probes.length);
        uint256 reserve = Frames.reserveFor(probes.length);
        for (uint256 i = 0; i < probes.length; i++) {
            if (!_affordable(probes[i], reserve)) {
                measures[i].stage = Stage.Starved;
                continue;
            }
            (bool passed, bytes memory result) =
                address(this).call(abi.encodeCall(this.validate, (i, probes[i], creator, cap)));
            if (result.length == 0) measures[i].stage = Stage.Starved;
            else if (passed) (measures[i], contexts[i]) = abi.decode(result, (Measure, bytes));
            else measures[i] = abi.decode(result, (Measure));
        }
        for (uint256 i = 0; i < probes.length; i++) {
            Measure memory m = measures[i];
            if (m.stage != Stage.Done) continue;
            if (contexts[i].length != 0) {
                (, bytes memory result) =
                    address(this).call(abi.encodeCall(this.execute, (probes[i], m, contexts[i], cap)));
                if (result.length == 0) m.stage = Stage.Starved;
                else measures[i] = abi.decode(result, (Measure));
                continue;
            }
            if (probes[i].callData.length == 0) continue;
            if (!Frames.affords(probes[i].callGas, reserve)) {
                m.stage = Stage.Starved;
                continue;
            }
            uint256 free = _free();
            bytes memory callData = probes[i].callData;
            Outcome memory seen = _runLeast(probes[i].sender, probes[i].callGas, callData, cap);
            (m.callGas, m.callLimit) = (seen.used, seen.limit);
            if (seen.starved) m.stage = Stage.Starved;
            else if (!seen.ok) m.stage = Stage.Call;
            m.data = _last(seen.data, free);
        }
        Frames.revertWith(abi.encode(measures));
    }

    /// @dev Whether there is gas to give the op's creation, its validation and its paymaster's their limits each.
    function _affordable(Probe calldata probe, uint256 reserve) private view returns (bool) {
        uint256 limit = probe.verificationGas;
        uint256 paymasterGas = probe.paymaster == address(0) ? 0 : probe.paymasterGas;
        if (!Frames.affords(limit, reserve) || !Frames.affords(paymasterGas, reserve)) return false;
        return Frames.affords((probe.initCode.length == 0 ? limit : 2 * limit) + paymasterGas, reserve);
    }

    /// @dev Calls `run` with `data` for `ops` ops; when that frame runs out of gas, every op is starved.
    function _run(bytes memory data, uint256 ops) internal returns (Measure[] memory measures) {
        uint256 reserve = Frames.reserveFor(ops);
        uint256 left = gasleft();
        (, bytes memory result) = address(this).call{gas: left > reserve ? left - reserve : 0}(data);
        if (result.length != 0) return abi.decode(result, (Measure[]));
        measures = new Measure[](ops);
        for (uint256 i = 0; i < ops; i++) {
            measures[i].stage = Stage.Starved;
        }
    }
}
