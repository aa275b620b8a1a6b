// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Chain, Measure, Probe, WalletState} from "./LensTypes.sol";

/// @dev What the lens asks of the EntryPoint's own code (the same in v0.6, v0.7 and v0.8).
interface IEntryPointViews {
    function balanceOf(address account) external view returns (uint256);
    function getNonce(address sender, uint192 key) external view returns (uint256);
}

/// @title Measures ERC-4337 ops inside one `eth_call`
/// @notice Never deployed. A state override puts this code at the EntryPoint's address, the EntryPoint's own code at
/// `SPARE`, and at the SenderCreator's address a proxy (EIP-1167) that runs this code. Whatever the lens does not know
/// itself is run by the EntryPoint's code with the EntryPoint's storage, so wallets and factories find the EntryPoint
/// that they expect: its address as the caller, its deposits, its nonces. Works on the canonical v0.6, v0.7 and v0.8,
/// whose layouts agree in what is used here: slot 0 maps an account to its deposit (lowest 112 bits), slot 1 an account
/// and a key to the next sequence. Paymasters are not run.
/// @dev Frames that end in `_revertWith` give back their result as revert data: a revert also takes back which
/// accounts and slots are warm (EIP-2929), so that looking does not make what is measured afterwards cheaper.
/// Results live in the memory of frames that call the hostile code and that nothing else can reach; a wallet that
/// calls one of the functions below runs into the EntryPoint's own code like any unknown selector.
contract GasLens {
    /// @notice Where the EntryPoint's own code stands: the last 20 bytes of keccak256("castellan.lens.entrypoint").
    address public constant SPARE = 0xFc2FE12c3c1D4992B9A045435810e7ADE94FCaF7;

    /// @dev Bytes of return data kept for one probe, and for all of them together.
    uint256 private constant DATA_CAP = 16_384;
    uint256 private constant DATA_CAP_TOTAL = 524_288;

    /// @dev Gas that the lens keeps for itself when it grants gas to foreign code: in any frame, and for each op of
    /// the list in the frames that answer for all of them.
    uint256 private constant RESERVE = 100_000;
    uint256 private constant RESERVE_EACH = 30_000;

    uint8 private constant DONE = 0;
    uint8 private constant CREATION = 1;
    uint8 private constant VALIDATION = 2;
    uint8 private constant PREFUND = 3;
    uint8 private constant CALL = 4;
    uint8 private constant STARVED = 5;

    /// @notice The EntryPoint's way to name a failing op.
    error FailedOp(uint256 opIndex, string reason);

    /// @notice `handleOps` was called from inside an op.
    error ReentrancyGuardReentrantCall();

    /// @notice The state override lacks the EntryPoint's code at `SPARE`.
    error NoEntryPointCode();

    /// @dev True while a measurement runs, at the EntryPoint's address only.
    bool private transient running;

    /// @dev Only this contract itself may run the body; for anyone else the function does not exist.
    modifier internalOnly() {
        if (msg.sender != address(this)) _runEntryPoint();
        _;
    }

    /// @notice Measures ops as `handleOps` would run them: all validations first, each undone when it fails, then
    /// the calls of those that passed, in order, each on the state that its predecessors left. When there are
    /// several, each one that went through is run alone too and the larger figures are given, for what an earlier
    /// op has warmed is cheap only in its company.
    /// @param probes the ops, in the order of the bundle
    /// @param wallets whose state is reported
    /// @param keys nonce keys whose sequences are reported for each wallet
    /// @param beacon a beacon whose implementation is reported, or zero
    /// @param creator the EntryPoint's SenderCreator
    /// @return chain the block environment and the beacon's implementation
    /// @return states of the wallets before any probe
    /// @return measures one per probe
    function measure(
        Probe[] calldata probes,
        address[] calldata wallets,
        uint192[] calldata keys,
        address beacon,
        address creator
    ) external returns (Chain memory chain, WalletState[] memory states, Measure[] memory measures) {
        if (running) _runEntryPoint();
        running = true;
        (, bytes memory seen) = address(this).call(abi.encodeCall(this.look, (wallets, keys, beacon)));
        (chain, states) = abi.decode(seen, (Chain, WalletState[]));
        // This also warms the account: delegating to it is the lens's own detour and must not be measured as cold.
        if (SPARE.code.length == 0) revert NoEntryPointCode();
        uint256 cap = probes.length * DATA_CAP > DATA_CAP_TOTAL ? DATA_CAP_TOTAL / probes.length : DATA_CAP;
        measures = _run(abi.encodeCall(this.run, (probes, creator, cap)), probes.length);
        if (probes.length == 1) measures[0].coldValidation = measures[0].coldCall = measures[0].stage == DONE;
        else _runAlone(probes, creator, cap, measures);
    }

    /// @notice Looks at the chain and at wallets. Only for the lens itself; always reverts, with the answer.
    function look(address[] calldata wallets, uint192[] calldata keys, address beacon) external internalOnly {
        Chain memory chain;
        chain.chainId = block.chainid;
        chain.number = block.number;
        chain.timestamp = block.timestamp;
        chain.baseFee = block.basefee;
        chain.gasLimit = block.gaslimit;
        if (beacon != address(0)) {
            chain.implementation = _implementation(beacon);
            if (chain.implementation != address(0)) chain.implementationHash = chain.implementation.codehash;
        }
        WalletState[] memory states = new WalletState[](wallets.length);
        IEntryPointViews entryPoint = IEntryPointViews(address(this));
        for (uint256 i = 0; i < wallets.length; i++) {
            address wallet = wallets[i];
            states[i].deposit = entryPoint.balanceOf(wallet);
            states[i].balance = wallet.balance;
            states[i].codeHash = wallet.codehash;
            states[i].sequences = new uint64[](keys.length);
            for (uint256 k = 0; k < keys.length; k++) {
                states[i].sequences[k] = uint64(entryPoint.getNonce(wallet, keys[k]));
            }
        }
        _revertWith(abi.encode(chain, states));
    }

    /// @notice A balance. Only for the lens itself; always reverts, with the answer.
    function lookAtBalance(address account) external internalOnly {
        _revertWith(abi.encode(account.balance));
    }

    /// @notice Runs a bundle. Only for the lens itself; always reverts, with the measures.
    function run(Probe[] calldata probes, address creator, uint256 cap) external internalOnly {
        Measure[] memory measures = new Measure[](probes.length);
        uint256 reserve = _reserve(probes.length);
        for (uint256 i = 0; i < probes.length; i++) {
            uint256 limit = probes[i].verificationGas;
            // Creation and validation are each given the limit.
            if (!_affords(limit, reserve) || (probes[i].initCode.length != 0 && !_affords(2 * limit, reserve))) {
                measures[i].stage = STARVED;
                continue;
            }
            (, bytes memory result) = address(this).call(abi.encodeCall(this.validate, (i, probes[i], creator, cap)));
            if (result.length == 0) measures[i].stage = STARVED;
            else measures[i] = abi.decode(result, (Measure));
        }
        for (uint256 i = 0; i < probes.length; i++) {
            Measure memory m = measures[i];
            if (m.stage != DONE || probes[i].callData.length == 0) continue;
            bytes memory callData = probes[i].callData;
            if (!_affords(probes[i].callGas, reserve)) {
                m.stage = STARVED;
                continue;
            }
            (bool ok, uint256 used,) = _call(probes[i].sender, probes[i].callGas, callData);
            m.callGas = used;
            m.data = _returned(cap);
            if (!ok) m.stage = CALL;
        }
        _revertWith(abi.encode(measures));
    }

    /// @notice Creates and validates one op as the EntryPoint would. Only for the lens itself. Returns the measure,
    /// or reverts with it, and so undoes everything, when the op does not pass.
    function validate(uint256 index, Probe calldata probe, address creator, uint256 cap)
        external
        internalOnly
        returns (Measure memory m)
    {
        if (!_affords(probe.verificationGas, RESERVE)) _stop(m, STARVED, "");
        address sender = probe.sender;
        if (probe.initCode.length != 0) {
            if (sender.code.length != 0) _fail(m, CREATION, index, "AA10 sender already constructed");
            bytes memory create = abi.encodeCall(this.createSender, (probe.initCode));
            (bool created, uint256 used, uint256 word) = _call(creator, probe.verificationGas, create);
            m.creationGas = used;
            if (!created) _stop(m, CREATION, _returned(cap));
            if (address(uint160(word)) != sender) _fail(m, CREATION, index, "AA14 initCode must return sender");
            if (sender.code.length == 0) _fail(m, CREATION, index, "AA15 initCode must create sender");
        }

        uint256 slot = uint256(keccak256(abi.encode(sender, 0)));
        uint256 demanded = probe.requiredPrefund;
        m.bookkeepingGas = gasleft();
        uint256 missing = _minus(demanded, _deposit(slot));
        m.bookkeepingGas -= gasleft();
        if (missing != 0) {
            (, bytes memory balance) = address(this).call(abi.encodeCall(this.lookAtBalance, (sender)));
            m.shortfall = _minus(missing, abi.decode(balance, (uint256)));
            missing -= m.shortfall;
            demanded -= m.shortfall;
        }
        bytes memory call_ = probe.validateCall;
        if (call_.length < 100) _fail(m, VALIDATION, index, "AA23 reverted");
        assembly ("memory-safe") {
            mstore(add(call_, 100), missing)
        }
        if (!_affords(probe.verificationGas, RESERVE)) _stop(m, STARVED, "");
        (bool valid, uint256 gasUsed, uint256 validationData) = _call(sender, probe.verificationGas, call_);
        m.validationGas = gasUsed;
        if (!valid) _stop(m, VALIDATION, _returned(cap));
        m.validationData = validationData;
        if (_returnedSize() < 32) {
            _fail(m, VALIDATION, index, sender.code.length == 0 ? "AA20 account not deployed" : "AA23 reverted");
        }
        uint256 before = gasleft();
        if (_deposit(slot) < demanded) _fail(m, PREFUND, index, "AA21 didn't pay prefund");
        uint256 nonceSlot = uint256(keccak256(abi.encode(probe.nonce >> 64, keccak256(abi.encode(sender, 1)))));
        uint256 sequence;
        assembly ("memory-safe") {
            sstore(slot, sub(sload(slot), demanded))
            sequence := sload(nonceSlot)
            sstore(nonceSlot, add(sequence, 1))
        }
        m.bookkeepingGas += before - gasleft();
        if (m.creationGas + m.validationGas + m.bookkeepingGas > probe.verificationGas) {
            _fail(m, VALIDATION, index, "AA26 over verificationGasLimit");
        }
        m.nonceAccepted = sequence == uint64(probe.nonce);
    }

    /// @notice At the SenderCreator's address: calls the factory in `initCode` and returns the word that it
    /// returned. Unlike the real one it reverts with the factory's revert data.
    function createSender(bytes calldata initCode) external returns (address sender) {
        if (running) _runEntryPoint();
        if (initCode.length < 20) return address(0);
        bytes memory data = initCode[20:];
        (bool ok,, uint256 word) = _call(address(bytes20(initCode[:20])), gasleft(), data);
        if (!ok) _revertWith(_returned(DATA_CAP));
        return address(uint160(word));
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

    /// @dev Calls `run` with `data` in a frame whose effects are all undone.
    function _run(bytes memory data, uint256 ops) private returns (Measure[] memory measures) {
        uint256 limit = _minus(gasleft(), _reserve(ops));
        (, bytes memory result) = address(this).call{gas: limit}(data);
        if (result.length != 0) return abi.decode(result, (Measure[]));
        measures = new Measure[](ops);
        for (uint256 i = 0; i < ops; i++) {
            measures[i].stage = STARVED;
        }
    }

    /// @dev Runs each op that went through again, alone, and keeps the larger figures.
    function _runAlone(Probe[] calldata probes, address creator, uint256 cap, Measure[] memory measures) private {
        uint256 reserve = _reserve(probes.length);
        address[] memory senders = new address[](probes.length);
        uint256[] memory claims = new uint256[](probes.length);
        uint256 free;
        assembly ("memory-safe") {
            free := mload(0x40)
        }
        for (uint256 i = 0; i < probes.length; i++) {
            // What the earlier ops of this wallet claim of its deposit is gone for this one, in their company or later.
            senders[i] = probes[i].sender;
            claims[i] = probes[i].requiredPrefund;
            for (uint256 k = i; k > 0; k--) {
                if (senders[k - 1] != senders[i]) continue;
                unchecked {
                    claims[i] += claims[k - 1];
                }
                break;
            }
            Measure memory m = measures[i];
            if (m.stage != DONE) continue;
            // Bounded by what was seen, so that a wallet cannot take its whole allowance twice.
            uint256 validationGas = _atMost(2 * (m.creationGas + m.validationGas) + 200_000, probes[i].verificationGas);
            uint256 callGas = _atMost(2 * m.callGas + 200_000, probes[i].callGas);
            if (!_affords(2 * validationGas + callGas + _reserve(1), reserve)) break;
            Probe[] memory alone = new Probe[](1);
            alone[0] = probes[i];
            alone[0].requiredPrefund = claims[i];
            alone[0].verificationGas = validationGas;
            alone[0].callGas = callGas;
            Measure memory a = _run(abi.encodeCall(this.run, (alone, creator, cap)), 1)[0];
            if (a.stage == DONE || a.stage == CALL) {
                m.creationGas = _atLeast(m.creationGas, a.creationGas);
                m.validationGas = _atLeast(m.validationGas, a.validationGas);
                m.bookkeepingGas = _atLeast(m.bookkeepingGas, a.bookkeepingGas);
                m.coldValidation = true;
            }
            if (a.stage == DONE) {
                m.callGas = _atLeast(m.callGas, a.callGas);
                m.coldCall = true;
            }
            // Nothing of this turn is needed any more.
            assembly ("memory-safe") {
                mstore(0x40, free)
            }
        }
    }

    /// @dev Calls and copies nothing but the first word of the answer.
    function _call(address target, uint256 limit, bytes memory data)
        private
        returns (bool ok, uint256 used, uint256 word)
    {
        assembly ("memory-safe") {
            mstore(0, 0)
            used := gas()
            ok := call(limit, target, 0, add(data, 32), mload(data), 0, 32)
            used := sub(used, gas())
            word := mload(0)
        }
    }

    /// @dev Whether a frame can be given `limit` gas here (EIP-150 keeps back one part in 64), and `reserve` is left.
    function _affords(uint256 limit, uint256 reserve) private view returns (bool) {
        return limit < type(uint128).max && (gasleft() * 63) / 64 > limit + reserve;
    }

    function _reserve(uint256 ops) private pure returns (uint256) {
        return RESERVE + RESERVE_EACH * ops;
    }

    /// @dev The return data of the last call, at most `cap` bytes of it.
    function _returned(uint256 cap) private pure returns (bytes memory data) {
        assembly ("memory-safe") {
            let size := returndatasize()
            if gt(size, cap) { size := cap }
            data := mload(0x40)
            mstore(data, size)
            returndatacopy(add(data, 32), 0, size)
            mstore(0x40, and(add(add(data, size), 63), not(31)))
        }
    }

    function _returnedSize() private pure returns (uint256 size) {
        assembly ("memory-safe") {
            size := returndatasize()
        }
    }

    /// @dev A beacon's answer, or zero; a beacon cannot make this fail.
    function _implementation(address beacon) private view returns (address implementation) {
        // implementation()
        bytes4 selector = 0x5c60da1b;
        assembly ("memory-safe") {
            mstore(0, selector)
            if and(eq(returndatasize(), 32), staticcall(100000, beacon, 0, 4, 0, 32)) {
                implementation := and(mload(0), 0xffffffffffffffffffffffffffffffffffffffff)
            }
        }
    }

    function _deposit(uint256 slot) private view returns (uint256 deposit) {
        assembly ("memory-safe") {
            deposit := and(sload(slot), 0xffffffffffffffffffffffffffff)
        }
    }

    function _fail(Measure memory m, uint8 stage, uint256 index, string memory reason) private pure {
        _stop(m, stage, abi.encodeWithSelector(FailedOp.selector, index, reason));
    }

    /// @dev Ends the frame and undoes it; the measure is its revert data.
    function _stop(Measure memory m, uint8 stage, bytes memory data) private pure {
        m.stage = stage;
        m.data = data;
        _revertWith(abi.encode(m));
    }

    function _revertWith(bytes memory data) private pure {
        assembly ("memory-safe") {
            revert(add(data, 32), mload(data))
        }
    }

    /// @dev Runs the EntryPoint's own code with this call's calldata, and ends the frame with its answer.
    function _runEntryPoint() private {
        address spare = SPARE;
        assembly {
            calldatacopy(0, 0, calldatasize())
            let ok := delegatecall(gas(), spare, 0, calldatasize(), 0, 0)
            returndatacopy(0, 0, returndatasize())
            if ok { return(0, returndatasize()) }
            revert(0, returndatasize())
        }
    }

    function _minus(uint256 a, uint256 b) private pure returns (uint256) {
        return a > b ? a - b : 0;
    }

    function _atMost(uint256 a, uint256 b) private pure returns (uint256) {
        return a < b ? a : b;
    }

    function _atLeast(uint256 a, uint256 b) private pure returns (uint256) {
        return a > b ? a : b;
    }
}
