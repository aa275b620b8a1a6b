// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Frames} from "./Frames.sol";
import {Measure, Probe, Stage} from "./LensTypes.sol";
import {LimitSearch, Outcome} from "./LimitSearch.sol";

/// @title Asks and charges the paymaster of one op as the EntryPoint would, and measures it
/// @dev The canonical v0.6, v0.7 and v0.8 agree in the storage that is used here: slot 0 maps an account to its deposit
/// (lowest 112 bits), slot 1 an account and a key to the next sequence.
abstract contract PaymasterRunner is LimitSearch {
    /// @notice The EntryPoint's way to name a failing op.
    error FailedOp(uint256 opIndex, string reason);

    /// @dev validateUserOp of v0.6: distinguishes the versions.
    bytes4 private constant VALIDATE_V06 = 0x3a871cdd;

    // validatePaymasterUserOp and postOp of v0.6, and of v0.7 and v0.8
    bytes4 private constant APPROVE_V06 = 0xf465c77e;
    bytes4 private constant APPROVE = 0x52b7512c;
    bytes4 private constant POST_OP_V06 = 0xa9a23409;
    bytes4 private constant POST_OP = 0x7c627b21;

    function _isV06(Probe calldata probe) private pure returns (bool) {
        return bytes4(probe.validateCall) == VALIDATE_V06;
    }

    /// @dev Charges the paymaster and asks it to pay.
    /// @return context the paymaster's context for postOp; empty: no postOp
    function _approve(Measure memory m, uint256 index, Probe calldata probe, uint256 cap)
        internal
        returns (bytes memory context)
    {
        uint256 limit = probe.paymasterGas;
        if (_isV06(probe)) limit = probe.verificationGas - m.creationGas - m.validationGas - m.bookkeepingGas;
        if (!Frames.affords(limit, Frames.RESERVE)) _stop(m, Stage.Starved, "");
        if (!_chargePaymaster(m, probe)) _fail(m, Stage.Paymaster, index, "AA30 paymaster not deployed");

        Outcome memory seen = _runLeast(probe.paymaster, limit, _approveCall(probe), cap);
        if (seen.starved) _stop(m, Stage.Starved, "");
        m.paymasterLimit = m.paymasterGas + seen.limit;
        m.paymasterGas += seen.used;
        if (!seen.ok) _stop(m, Stage.Paymaster, seen.data);
        if (m.paymasterGas > limit) _fail(m, Stage.Paymaster, index, _overLimit(probe));
        bool ok;
        (ok, context, m.paymasterData) = _split(seen.data);
        if (!ok) _fail(m, Stage.Paymaster, index, "AA33 reverted");
    }

    function _overLimit(Probe calldata probe) private pure returns (string memory) {
        return _isV06(probe) ? "AA40 over verificationGasLimit" : "AA36 over paymasterVerificationGasLimit";
    }

    /// @dev Takes the prefund, or the deposit if it is smaller, and starts the figure of the paymaster's gas with that cost,
    /// including the cold access to its account.
    /// @return deployed whether there is code
    function _chargePaymaster(Measure memory m, Probe calldata probe) private returns (bool deployed) {
        uint256 slot = uint256(keccak256(abi.encode(probe.paymaster, 0)));
        uint256 demanded = probe.requiredPrefund;
        uint256 before = gasleft();
        uint256 deposit = _deposit(slot);
        if (deposit < demanded) {
            m.shortfall = demanded - deposit;
            demanded = deposit;
        }
        _charge(slot, demanded);
        deployed = probe.paymaster.code.length != 0;
        m.paymasterGas = before - gasleft();
    }

    /// @dev (bytes context, uint256 validationData) in `answer`, where the context is read in place.
    function _split(bytes memory answer) private pure returns (bool ok, bytes memory context, uint256 data) {
        if (answer.length < 96) return (false, context, 0);
        uint256 offset;
        assembly ("memory-safe") {
            offset := mload(add(answer, 32))
            data := mload(add(answer, 64))
            context := add(answer, 96)
        }
        ok = offset == 64 && context.length <= answer.length - 96;
    }

    /// @dev The arguments of validateUserOp, except the third: the maximum cost of the op.
    function _approveCall(Probe calldata probe) private pure returns (bytes memory data) {
        data = probe.validateCall;
        bytes4 selector = _isV06(probe) ? APPROVE_V06 : APPROVE;
        uint256 maxCost = probe.requiredPrefund;
        assembly ("memory-safe") {
            let first := add(data, 32)
            mstore(first, or(selector, and(mload(first), shr(32, not(0)))))
            mstore(add(data, 100), maxCost)
        }
    }

    /// @notice Runs the op's call and its paymaster's postOp. Only for the lens itself. Returns the measure, or reverts
    /// with it, and so undoes both, when one of them fails.
    function execute(Probe calldata probe, Measure memory m, bytes calldata context, uint256 cap)
        external
        internalOnly
        returns (Measure memory)
    {
        if (probe.callData.length != 0) {
            bytes memory callData = probe.callData;
            if (!Frames.affords(probe.callGas, Frames.RESERVE)) _stop(m, Stage.Starved, "");
            Outcome memory called = _runLeast(probe.sender, probe.callGas, callData, cap);
            if (called.starved) _stop(m, Stage.Starved, "");
            (m.callGas, m.callLimit, m.data) = (called.used, called.limit, called.data);
            if (!called.ok) _stop(m, Stage.Call, m.data);
        }
        uint256 limit = _isV06(probe) ? probe.verificationGas : probe.postOpGas;
        if (!Frames.affords(limit, Frames.RESERVE)) _stop(m, Stage.Starved, "");
        Outcome memory settled = _runLeast(probe.paymaster, limit, _postOpCall(probe, m, context), cap);
        if (settled.starved) _stop(m, Stage.Starved, "");
        (m.postOpGas, m.postOpLimit) = (settled.used, settled.limit);
        if (!settled.ok) _stop(m, Stage.PostOp, settled.data);
        return m;
    }

    /// @dev Mode 0: the call succeeded. The cost is that of what was measured.
    function _postOpCall(Probe calldata probe, Measure memory m, bytes calldata context)
        private
        pure
        returns (bytes memory)
    {
        uint256 gas = m.creationGas + m.validationGas + m.bookkeepingGas + m.paymasterGas + m.callGas;
        uint256 cost = gas * probe.feePerGas;
        return _isV06(probe)
            ? abi.encodeWithSelector(POST_OP_V06, 0, context, cost)
            : abi.encodeWithSelector(POST_OP, 0, context, cost, probe.feePerGas);
    }

    function _deposit(uint256 slot) internal view returns (uint256 deposit) {
        assembly ("memory-safe") {
            deposit := and(sload(slot), 0xffffffffffffffffffffffffffff)
        }
    }

    /// @dev Takes `demanded` from the deposit in `slot`, which holds as much.
    function _charge(uint256 slot, uint256 demanded) internal {
        assembly ("memory-safe") {
            sstore(slot, sub(sload(slot), demanded))
        }
    }

    function _fail(Measure memory m, Stage stage, uint256 index, string memory reason) internal pure {
        _stop(m, stage, abi.encodeWithSelector(FailedOp.selector, index, reason));
    }

    /// @dev Ends the frame and undoes it; the measure is its revert data.
    function _stop(Measure memory m, Stage stage, bytes memory data) internal pure {
        m.stage = stage;
        m.data = data;
        Frames.revertWith(abi.encode(m));
    }
}
