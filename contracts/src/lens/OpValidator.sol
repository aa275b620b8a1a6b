// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Frames} from "./Frames.sol";
import {Measure, Probe, Stage} from "./LensTypes.sol";
import {PaymasterRunner} from "./PaymasterRunner.sol";

/// @title Creates, validates and charges one op as the EntryPoint would, and measures it
abstract contract OpValidator is PaymasterRunner {
    /// @notice Creates and validates one op as the EntryPoint would. Only for the lens itself. Returns the measure and the
    /// paymaster's context for postOp. Reverts with the measure, and so undoes everything, when the op does not pass.
    function validate(uint256 index, Probe calldata probe, address creator, uint256 cap)
        external
        internalOnly
        returns (Measure memory m, bytes memory context)
    {
        if (!Frames.affords(probe.verificationGas, Frames.RESERVE)) _stop(m, Stage.Starved, "");
        if (probe.initCode.length != 0) _create(m, index, probe, creator, cap);
        uint256 sequence;
        if (probe.paymaster == address(0)) {
            sequence = _validatePaying(m, index, probe, cap);
        } else {
            _validate(m, index, probe, 0, cap);
            uint256 before = gasleft();
            sequence = _useNonce(probe.sender, probe.nonce);
            m.bookkeepingGas = before - gasleft();
        }
        if (m.creationGas + m.validationGas + m.bookkeepingGas > probe.verificationGas) {
            _fail(m, Stage.Validation, index, "AA26 over verificationGasLimit");
        }
        m.nonceAccepted = sequence == uint64(probe.nonce);
        if (probe.paymaster != address(0)) context = _approve(m, index, probe, cap);
    }

    /// @dev The validation of a wallet that pays for itself.
    /// @return the sequence that the EntryPoint would have accepted
    function _validatePaying(Measure memory m, uint256 index, Probe calldata probe, uint256 cap)
        private
        returns (uint256)
    {
        address sender = probe.sender;
        uint256 slot = uint256(keccak256(abi.encode(sender, 0)));
        uint256 demanded = probe.requiredPrefund;
        uint256 before = gasleft();
        uint256 deposit = _deposit(slot);
        uint256 missing = deposit < demanded ? demanded - deposit : 0;
        m.bookkeepingGas = before - gasleft();
        if (missing != 0) {
            (, bytes memory answer) = address(this).call(abi.encodeCall(this.lookAtBalance, (sender)));
            uint256 balance = abi.decode(answer, (uint256));
            if (balance < missing) {
                m.shortfall = missing - balance;
                missing = balance;
                demanded -= m.shortfall;
            }
        }

        _validate(m, index, probe, missing, cap);

        before = gasleft();
        if (_deposit(slot) < demanded) _fail(m, Stage.Prefund, index, "AA21 didn't pay prefund");
        _charge(slot, demanded);
        uint256 sequence = _useNonce(sender, probe.nonce);
        m.bookkeepingGas += before - gasleft();
        return sequence;
    }

    /// @notice At the SenderCreator's address: calls the factory in `initCode` and returns the word that it
    /// returned. Unlike the real one it reverts with the factory's revert data.
    function createSender(bytes calldata initCode) external returns (address sender) {
        if (running) _runEntryPoint();
        if (initCode.length < 20) return address(0);
        bytes memory data = initCode[20:];
        (bool ok,, uint256 word) = Frames.call(address(bytes20(initCode[:20])), gasleft(), data);
        if (!ok) Frames.revertWith(Frames.returned(Frames.DATA_CAP));
        return address(uint160(word));
    }

    function _create(Measure memory m, uint256 index, Probe calldata probe, address creator, uint256 cap) private {
        address sender = probe.sender;
        if (sender.code.length != 0) _fail(m, Stage.Creation, index, "AA10 sender already constructed");
        bytes memory create = abi.encodeCall(this.createSender, (probe.initCode));
        (bool ok, uint256 used, uint256 word) = Frames.call(creator, probe.verificationGas, create);
        m.creationGas = used;
        if (!ok) _stop(m, Stage.Creation, Frames.returned(cap));
        if (address(uint160(word)) != sender) _fail(m, Stage.Creation, index, "AA14 initCode must return sender");
        if (sender.code.length == 0) _fail(m, Stage.Creation, index, "AA15 initCode must create sender");
    }

    function _validate(Measure memory m, uint256 index, Probe calldata probe, uint256 missing, uint256 cap) private {
        bytes memory data = probe.validateCall;
        if (data.length < 100) _fail(m, Stage.Validation, index, "AA23 reverted");
        assembly ("memory-safe") {
            mstore(add(data, 100), missing)
        }
        if (!Frames.affords(probe.verificationGas, Frames.RESERVE)) _stop(m, Stage.Starved, "");
        address sender = probe.sender;
        (bool ok, uint256 used, uint256 word) = Frames.call(sender, probe.verificationGas, data);
        m.validationGas = used;
        if (!ok) _stop(m, Stage.Validation, Frames.returned(cap));
        m.validationData = word;
        if (Frames.returnedSize() < 32) {
            string memory reason = sender.code.length == 0 ? "AA20 account not deployed" : "AA23 reverted";
            _fail(m, Stage.Validation, index, reason);
        }
    }

    /// @dev Uses up a nonce.
    /// @return sequence the sequence that the EntryPoint would have accepted
    function _useNonce(address sender, uint256 nonce) private returns (uint256 sequence) {
        uint256 slot = uint256(keccak256(abi.encode(nonce >> 64, keccak256(abi.encode(sender, 1)))));
        assembly ("memory-safe") {
            sequence := sload(slot)
            sstore(slot, add(sequence, 1))
        }
    }
}
