// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @title Code at the EntryPoint's address that forwards unknown calls to the EntryPoint's own code
/// @notice Wallets and factories find the EntryPoint that they expect: its address as the caller, its deposits, its
/// nonces. Serves the canonical v0.6, v0.7 and v0.8.
abstract contract EntryPointProxy {
    /// @notice Address of the EntryPoint's own code: the last 20 bytes of keccak256("castellan.lens.entrypoint").
    address public constant SPARE = 0xFc2FE12c3c1D4992B9A045435810e7ADE94FCaF7;

    /// @notice `handleOps` was called from inside an op.
    error ReentrancyGuardReentrantCall();

    /// @dev True while a measurement runs, at the EntryPoint's address only.
    bool internal transient running;

    /// @dev Only this contract itself may run the body; for anyone else, a wallet for example, the function does not
    /// exist: the call runs into the EntryPoint's own code like any unknown selector.
    modifier internalOnly() {
        if (msg.sender != address(this)) _runEntryPoint();
        _;
    }

    /// @notice Everything else is the EntryPoint's, apart from a bundle inside a bundle, which it would refuse.
    fallback() external payable {
        if (running) {
            bytes4 selector = msg.sig;
            // handleOps and handleAggregatedOps, of v0.6 and of v0.7 and later
            if (selector == 0x1fad948c || selector == 0x4b1d7cf5 || selector == 0x765e827f || selector == 0xdbed18e0) {
                revert ReentrancyGuardReentrantCall();
            }
        }
        _runEntryPoint();
    }

    /// @notice A deposit, credited by the EntryPoint's code.
    receive() external payable {
        _runEntryPoint();
    }

    /// @dev Runs the EntryPoint's own code with this call's calldata, and ends the frame with its answer.
    function _runEntryPoint() internal {
        address spare = SPARE;
        assembly {
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), spare, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if ok { return(0, returndatasize()) }
            revert(0, returndatasize())
        }
    }
}
