// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Config} from "./Types.sol";
import {ConfigRules} from "./ConfigRules.sol";
import {ConfigStorage} from "./ConfigStorage.sol";

/// @title Rotation
/// @notice Replacement of a wallet's configuration: by the wallet itself at any time, and, if the wallet has named one,
/// by a recovery address after a delay in which the wallet can object. A new wallet has no recovery address, and a
/// rotation removes it, because a holder of the replaced keys may have named it.
abstract contract Rotation {
    using ConfigStorage for ConfigStorage.Layout;

    /// @dev One slot, and one more while a recovery is pending. `readyAt` is zero when none is.
    /// @custom:storage-location erc7201:castellan.wallet.recovery
    struct RecoveryLayout {
        address recovery;
        uint48 delay;
        uint48 readyAt;
        bytes32 pendingConfigHash;
    }

    /// @dev keccak256(abi.encode(uint256(keccak256("castellan.wallet.recovery")) - 1)) & ~bytes32(uint256(0xff))
    bytes32 private constant RECOVERY_LOCATION = 0x0895ac6ea5c4767fb3a9cf58b3a3718b508682c9731abf2b1d94cde604eddd00;

    /// @notice Least time between the start of a recovery and its end. Callable by any address.
    /// @return Seconds.
    uint48 public constant MIN_RECOVERY_DELAY = 48 hours;

    /// @notice Most time between the start of a recovery and its end. Callable by any address.
    /// @return Seconds.
    uint48 public constant MAX_RECOVERY_DELAY = 365 days;

    /// @notice A configuration replaced another one.
    /// @param configHash keccak256(abi.encode(config)) of the new one.
    /// @param configNonce Number of configurations installed so far, including the first.
    event ConfigChanged(bytes32 configHash, uint64 configNonce);
    /// @notice The wallet named, replaced or removed its recovery address, or a rotation removed it.
    /// @param recovery Address that may start a recovery from now on; zero: none.
    /// @param delay Seconds between the start of a recovery and its end.
    event RecoveryChanged(address indexed recovery, uint48 delay);
    /// @notice The recovery address announced a configuration.
    /// @param configHash keccak256(abi.encode(config)) of the announced one.
    /// @param readyAt First second (Unix) at which it may be installed.
    event RecoveryStarted(bytes32 configHash, uint48 readyAt);
    /// @notice The pending recovery is off: cancelled, replaced by a later one, or overtaken by the wallet's own
    /// {setConfig} or {setRecovery}.
    /// @param configHash keccak256(abi.encode(config)) of the configuration that was announced.
    event RecoveryCancelled(bytes32 configHash);

    /// @notice The caller is not the wallet itself.
    /// @param caller The caller.
    error OnlySelf(address caller);
    /// @notice The caller is not the recovery address, or the wallet has named none.
    /// @param caller The caller.
    error OnlyRecovery(address caller);
    /// @notice The custody of a wallet is part of its address and never changes.
    /// @param custody Custody of the refused configuration.
    error CustodyIsFixed(uint8 custody);
    /// @notice The delay is below {MIN_RECOVERY_DELAY} or above {MAX_RECOVERY_DELAY}, or was given without an address.
    /// @param delay The delay that was given, in seconds.
    error InvalidRecoveryDelay(uint48 delay);
    /// @notice No recovery to this configuration is pending.
    /// @param configHash keccak256(abi.encode(config)) of the configuration that was given.
    error NoSuchRecovery(bytes32 configHash);
    /// @notice The pending recovery may not end yet.
    /// @param readyAt First second (Unix) at which it may.
    error RecoveryNotReady(uint48 readyAt);

    /// @dev Rotation is never called by an EntryPoint directly: an operation executes a call of the wallet to itself.
    modifier onlySelf() {
        if (msg.sender != address(this)) revert OnlySelf(msg.sender);
        _;
    }

    modifier onlyRecovery() {
        address recovery = _recovery().recovery;
        if (recovery == address(0) || msg.sender != recovery) revert OnlyRecovery(msg.sender);
        _;
    }

    /// @notice Replaces the whole configuration immediately, under the rules of creation. Ends a pending recovery, and removes
    /// the recovery address. Only for the wallet itself.
    /// @param config The new one, of the same custody.
    function setConfig(Config calldata config) external onlySelf {
        _dropPending();
        _replace(config);
    }

    /// @notice Names the address that may start a recovery; the zero address with delay 0 removes it. Ends a pending one.
    /// Only for the wallet itself.
    /// @param recovery An address of the wallet holder's choice, e.g. a second device, a multisig, a notary.
    /// @param delay Seconds between start and end, from {MIN_RECOVERY_DELAY} to {MAX_RECOVERY_DELAY}.
    function setRecovery(address recovery, uint48 delay) external onlySelf {
        bool sound =
            recovery == address(0) ? delay == 0 : delay >= MIN_RECOVERY_DELAY && delay <= MAX_RECOVERY_DELAY;
        if (!sound) revert InvalidRecoveryDelay(delay);
        _dropPending();
        _nameRecovery(recovery, delay);
    }

    /// @notice Announces a configuration. Replaces an earlier announcement and its time. Only for the recovery address.
    /// @param config The configuration to install, of the same custody, under the rules of creation.
    function startRecovery(Config calldata config) external onlyRecovery {
        _checkReplacement(config);
        _dropPending();
        RecoveryLayout storage stored = _recovery();
        bytes32 configHash = keccak256(abi.encode(config));
        uint48 readyAt = uint48(block.timestamp) + stored.delay;
        stored.pendingConfigHash = configHash;
        stored.readyAt = readyAt;
        emit RecoveryStarted(configHash, readyAt);
    }

    /// @notice Installs the announced configuration once its time has come, and removes the recovery address like every
    /// rotation. Only for the recovery address.
    /// @param config The announced configuration.
    function finishRecovery(Config calldata config) external onlyRecovery {
        RecoveryLayout storage stored = _recovery();
        bytes32 configHash = keccak256(abi.encode(config));
        uint48 readyAt = stored.readyAt;
        if (readyAt == 0 || configHash != stored.pendingConfigHash) revert NoSuchRecovery(configHash);
        if (block.timestamp < readyAt) revert RecoveryNotReady(readyAt);
        stored.readyAt = 0;
        stored.pendingConfigHash = 0;
        _replace(config);
    }

    /// @notice Calls off the pending recovery, if there is one. Only for the wallet itself.
    function cancelRecovery() external onlySelf {
        _dropPending();
    }

    /// @notice The recovery address with its delay, and the pending recovery; zeros where there is none. Callable by any
    /// address.
    /// @return recovery Address that may start a recovery.
    /// @return delay Seconds between the start of a recovery and its end.
    /// @return pendingConfigHash keccak256(abi.encode(config)) of the announced configuration.
    /// @return readyAt First second (Unix) at which it may be installed.
    function recoveryState()
        external
        view
        returns (address recovery, uint48 delay, bytes32 pendingConfigHash, uint48 readyAt)
    {
        RecoveryLayout storage stored = _recovery();
        return (stored.recovery, stored.delay, stored.pendingConfigHash, stored.readyAt);
    }

    function _replace(Config calldata config) private {
        _checkReplacement(config);
        uint64 configNonce = ConfigStorage.get().install(config);
        emit ConfigChanged(keccak256(abi.encode(config)), configNonce);
        if (_recovery().recovery != address(0)) _nameRecovery(address(0), 0);
    }

    function _nameRecovery(address recovery, uint48 delay) private {
        RecoveryLayout storage stored = _recovery();
        stored.recovery = recovery;
        stored.delay = delay;
        emit RecoveryChanged(recovery, delay);
    }

    function _checkReplacement(Config calldata config) private view {
        ConfigRules.check(config);
        if (config.custody != ConfigStorage.get().custody) revert CustodyIsFixed(config.custody);
    }

    function _dropPending() private {
        RecoveryLayout storage stored = _recovery();
        if (stored.readyAt == 0) return;
        emit RecoveryCancelled(stored.pendingConfigHash);
        stored.readyAt = 0;
        stored.pendingConfigHash = 0;
    }

    function _recovery() private pure returns (RecoveryLayout storage stored) {
        assembly {
            stored.slot := RECOVERY_LOCATION
        }
    }
}
