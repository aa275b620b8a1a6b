// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Math} from "@openzeppelin/contracts/utils/math/Math.sol";
import {BundleRunner} from "./BundleRunner.sol";
import {Frames} from "./Frames.sol";
import {Chain, Measure, Probe, Stage, WalletState} from "./LensTypes.sol";

/// @title Measures ERC-4337 ops inside one `eth_call`
/// @notice Never deployed. A state override puts this code at the EntryPoint's address, the EntryPoint's own code at
/// `SPARE`, and at the SenderCreator's address a proxy (EIP-1167) that runs this code. Works on the canonical v0.6,
/// v0.7 and v0.8.
contract GasLens is BundleRunner {
    /// @dev Bytes of return data kept for all probes together.
    uint256 private constant DATA_CAP_TOTAL = 524_288;

    /// @notice The state override lacks the EntryPoint's code at `SPARE`.
    error NoEntryPointCode();

    /// @notice Measures ops as `handleOps` would run them: all validations first, each undone when it fails, then the
    /// calls of those that passed, in order, each on the state that its predecessors left. When there are several, each op
    /// that went through also runs by itself, and the larger figures are returned: accounts that an earlier op warmed are
    /// cheap only behind it.
    /// @param probes the ops, in the order of the bundle
    /// @param wallets whose state is reported
    /// @param keys nonce keys whose sequences are reported for each wallet
    /// @param beacon a beacon whose implementation is reported, or zero
    /// @param creator the EntryPoint's SenderCreator
    /// @param limitsDeclared whether the probes grant final limits, tried unchanged. Otherwise searches the least limits
    /// with which calls, paymasters' validations and postOps behave as with the probes' grants; later ops find the state
    /// that the earlier ones left under those limits
    /// @return chain the block environment and the beacon's implementation
    /// @return states of the wallets before any probe
    /// @return measures one per probe
    function measure(
        Probe[] calldata probes,
        address[] calldata wallets,
        uint192[] calldata keys,
        address beacon,
        address creator,
        bool limitsDeclared
    ) external returns (Chain memory chain, WalletState[] memory states, Measure[] memory measures) {
        if (running) _runEntryPoint();
        running = true;
        declared = limitsDeclared;
        (, bytes memory seen) = address(this).call(abi.encodeCall(this.look, (wallets, keys, beacon)));
        (chain, states) = abi.decode(seen, (Chain, WalletState[]));
        // This also warms the account: delegating to it is the lens's own detour and must not be measured as cold.
        if (SPARE.code.length == 0) revert NoEntryPointCode();
        uint256 cap = Frames.DATA_CAP;
        if (probes.length * cap > DATA_CAP_TOTAL) cap = DATA_CAP_TOTAL / probes.length;
        measures = _run(abi.encodeCall(this.run, (probes, creator, cap)), probes.length);
        if (probes.length == 1) measures[0].coldValidation = measures[0].coldCall = measures[0].stage == Stage.Done;
        else _runAlone(probes, creator, cap, measures);
    }

    /// @notice Runs several calls of `measure`, each on the original state: its effects, and the accounts and slots that it
    /// warms, are undone before the next call. Only the gas left differs: a measure short of it is `Starved`.
    /// @param calls calldata of `measure` each
    /// @return answers return data of each call, or its revert data; empty when it ran out of gas
    function measureEach(bytes[] calldata calls) external returns (bytes[] memory answers) {
        if (running) _runEntryPoint();
        answers = new bytes[](calls.length);
        for (uint256 i = 0; i < calls.length; i++) {
            (, answers[i]) = address(this).call(abi.encodeCall(this.undone, (calls[i])));
        }
    }

    /// @notice Does a call and undoes it; always reverts, with its answer. Only for the lens itself.
    function undone(bytes calldata data) external internalOnly {
        (, bytes memory answer) = address(this).call(data);
        Frames.revertWith(answer);
    }

    /// @dev Runs each op that went through again, by itself, and keeps the larger figures.
    function _runAlone(Probe[] calldata probes, address creator, uint256 cap, Measure[] memory measures) private {
        uint256 reserve = Frames.reserveFor(probes.length);
        uint256[] memory claims = _claims(probes);
        uint256 free;
        assembly ("memory-safe") {
            free := mload(0x40)
        }
        for (uint256 i = 0; i < probes.length; i++) {
            Measure memory m = measures[i];
            if (m.stage != Stage.Done) continue;
            (Probe[] memory alone, uint256 granted) = _alone(probes[i], claims[i], m);
            if (!Frames.affords(granted, reserve)) break;
            _keepLarger(m, _run(abi.encodeCall(this.run, (alone, creator, cap)), 1)[0]);
            // Releases the memory of this turn.
            assembly ("memory-safe") {
                mstore(0x40, free)
            }
        }
    }

    /// @dev A list of this op only, with gas for twice what was seen and some more: a wallet cannot take its whole
    /// allowance twice.
    /// @return list of one
    /// @return granted gas that it needs at most
    function _alone(Probe calldata probe, uint256 claim, Measure memory seen)
        private
        pure
        returns (Probe[] memory list, uint256 granted)
    {
        list = new Probe[](1);
        Probe memory only = list[0] = probe;
        only.requiredPrefund = claim;
        // On v0.6 the paymaster has its gas of this limit too.
        uint256 verified = seen.creationGas + seen.validationGas + seen.paymasterLimit + seen.postOpLimit;
        only.verificationGas = Math.min(2 * verified + 200_000, only.verificationGas);
        only.callGas = Math.min(2 * seen.callLimit + 200_000, only.callGas);
        only.paymasterGas = Math.min(2 * seen.paymasterLimit + 200_000, only.paymasterGas);
        only.postOpGas = Math.min(2 * seen.postOpLimit + 200_000, only.postOpGas);
        granted = 2 * only.verificationGas + only.callGas + only.paymasterGas + only.postOpGas + Frames.reserveFor(1);
    }

    /// @dev Deposit that each op and its wallet's earlier ops claim together: run by itself, an op must not rely on wei
    /// that those ops spend. A paymaster gets its op's own maximum cost.
    function _claims(Probe[] calldata probes) private pure returns (uint256[] memory claims) {
        address[] memory senders = new address[](probes.length);
        claims = new uint256[](probes.length);
        for (uint256 i = 0; i < probes.length; i++) {
            claims[i] = probes[i].requiredPrefund;
            if (probes[i].paymaster != address(0)) continue;
            senders[i] = probes[i].sender;
            for (uint256 k = i; k > 0; k--) {
                if (senders[k - 1] != senders[i]) continue;
                unchecked {
                    claims[i] += claims[k - 1];
                }
                break;
            }
        }
    }

    /// @dev Raises `m` to the figures that the op has by itself.
    function _keepLarger(Measure memory m, Measure memory alone) private pure {
        if (alone.stage != Stage.Done && alone.stage != Stage.Call) return;
        m.creationGas = Math.max(m.creationGas, alone.creationGas);
        m.validationGas = Math.max(m.validationGas, alone.validationGas);
        m.bookkeepingGas = Math.max(m.bookkeepingGas, alone.bookkeepingGas);
        m.paymasterGas = Math.max(m.paymasterGas, alone.paymasterGas);
        m.paymasterLimit = Math.max(m.paymasterLimit, alone.paymasterLimit);
        m.coldValidation = true;
        if (alone.stage != Stage.Done) return;
        m.callGas = Math.max(m.callGas, alone.callGas);
        m.postOpGas = Math.max(m.postOpGas, alone.postOpGas);
        m.callLimit = Math.max(m.callLimit, alone.callLimit);
        m.postOpLimit = Math.max(m.postOpLimit, alone.postOpLimit);
        m.coldCall = true;
    }
}
