// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Call, Config} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Configs} from "../support/Configs.sol";
import {HostileAccount} from "../support/HostileAccount.sol";
import {IEntryPointCommon, Op, Ops, Version} from "../support/Ops.sol";
import {Proving} from "../support/Proving.sol";
import {Grant, Terms, WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

interface ISenderCreator {
    function createSender(bytes calldata initCode) external returns (address);
}

/// @notice Strangers with a suite before them: wallets with funds, operations that are pending or over, sponsorships and
/// authorisations that they could read in a mempool. Every function is a thing that a stranger may try.
contract Strangers is WalletTest {
    using Ops for Op;

    struct Kept {
        bytes32 state;
        uint256 balance;
        uint256[3] deposits;
    }

    struct Creation {
        bytes data;
        bytes config;
        Wallet wallet;
    }

    Wallet[] internal wallets;
    Kept[] internal kept;

    /// @dev Signed by the owners and bound to {bundler}, by version; not submitted yet.
    Op[][3] internal pending;
    /// @dev Submitted already, and not bound.
    Op[][3] internal over;
    /// @dev By the stranger's own wallet, sponsored only for {bundler}.
    Op[3] internal sponsored;
    Creation[] internal creations;

    Wallet internal own;
    HostileAccount internal hostile;
    bytes32 internal suiteState;

    constructor() {
        setUp();
        uint256[] memory none;
        _keep(_wallet(Proving.config(1, 1, Proving.owners(1, 1), none)), 0);
        _keep(_wallet(Proving.config(3, 2, Proving.owners(1, 3), none)), 1);
        _keep(_wallet(Proving.config(5, 1, none, Proving.passkeys(1, 1))), 2);
        own = _wallet(Proving.config(1, 1, _one(STRANGER_KEY), none));
        hostile = new HostileAccount();
        vm.deal(address(hostile), 1_000 ether);
        for (uint256 v = 0; v < 3; ++v) {
            IEntryPointCommon entryPoint = IEntryPointCommon(Ops.entryPoint(Version(v)));
            vm.deal(address(this), 1_000 ether);
            entryPoint.depositTo{value: 1_000 ether}(address(hostile));
            sponsored[v] = _op(Version(v), own, "");
            sponsored[v].paymasterAndData = _sponsorData(Version(v), 0, 0, true);
        }
        for (uint8 i = 0; i < 4; ++i) _prepare(keccak256(abi.encode("creation", i)), Configs.valid(1, i), i < 2);
        for (uint256 i = 0; i < wallets.length; ++i) _note(i);
        suiteState = _suite();
    }

    function _one(uint256 key) private pure returns (uint256[] memory keys) {
        keys = new uint256[](1);
        keys[0] = key;
    }

    /// @dev Adds a wallet, with deposits, an executed operation and a pending operation on each EntryPoint.
    function _keep(Wallet wallet, uint256 kind) private {
        wallets.push(wallet);
        kept.push();
        bytes memory call = abi.encodeCall(wallet.execute, (address(0xbeef), 1, ""));
        for (uint256 v = 0; v < 3; ++v) {
            vm.deal(address(this), 1 ether);
            IEntryPointCommon(Ops.entryPoint(Version(v))).depositTo{value: 1 ether}(address(wallet));
            Op memory op = _proved(_op(Version(v), wallet, call), Version(v), kind, unbound);
            _handle(Version(v), op);
            over[v].push(op);
            pending[v].push(_proved(_op(Version(v), wallet, call), Version(v), kind, Terms(0, 0, bundler)));
        }
    }

    function _proved(Op memory op, Version version, uint256 kind, Terms memory terms) private view returns (Op memory) {
        bytes32 hash = _signingHash(op.hash(version), terms);
        bytes memory proof = kind == 2
            ? Proving.single(Proving.assertion(Proving.passkeys(1, 1)[0], hash, 0))
            : Proving.ecdsa(Proving.owners(1, kind == 0 ? 1 : 3), hash);
        op.signature = _signature(terms, proof);
        return op;
    }

    function _prepare(bytes32 saltHash, Config memory config, bool bound) private {
        Grant memory grant = _grant(saltHash, config);
        if (!bound) grant.bundler = address(0);
        bytes memory data = _creation(grant, config, _authorization(grant, DEPLOYER_KEY));
        creations.push();
        creations[creations.length - 1].data = data;
        creations[creations.length - 1].config = abi.encode(config);
        creations[creations.length - 1].wallet = _predicted(saltHash, config.custody);
        vm.deal(address(_predicted(saltHash, config.custody)), 1 ether);
    }

    // ------------------------------------------------------------------------------------------ what is kept

    function _state(Wallet wallet) private view returns (bytes32) {
        (Config memory config, uint64 configNonce) = wallet.configuration();
        (address recovery, uint48 delay, bytes32 hash, uint48 readyAt) = wallet.recoveryState();
        return keccak256(abi.encode(config, configNonce, recovery, delay, hash, readyAt));
    }

    function _suite() private view returns (bytes32) {
        return keccak256(
            abi.encode(
                [beacon.owner(), beacon.pendingOwner(), beacon.implementation()],
                [factory.owner(), factory.pendingOwner(), factory.deployer()],
                [paymaster.owner(), paymaster.pendingOwner(), paymaster.sponsor()]
            )
        );
    }

    function _note(uint256 i) private {
        kept[i].state = _state(wallets[i]);
        kept[i].balance = address(wallets[i]).balance;
        for (uint256 v = 0; v < 3; ++v) kept[i].deposits[v] = _deposit(v, address(wallets[i]));
    }

    function _deposit(uint256 v, address of_) private view returns (uint256) {
        return IEntryPointCommon(Ops.entryPoint(Version(v))).balanceOf(of_);
    }

    function checkWallets() external view {
        for (uint256 i = 0; i < wallets.length; ++i) {
            vm.assertEq(_state(wallets[i]), kept[i].state, "configuration of a wallet");
            vm.assertLe(kept[i].balance, address(wallets[i]).balance, "balance of a wallet");
            for (uint256 v = 0; v < 3; ++v) {
                vm.assertLe(kept[i].deposits[v], _deposit(v, address(wallets[i])), "deposit of a wallet");
            }
        }
    }

    function checkSuite() external view {
        vm.assertEq(_suite(), suiteState, "owners, deployer, sponsor, implementation");
        for (uint256 v = 0; v < 3; ++v) {
            vm.assertLe(10 ether, _deposit(v, address(paymaster)), "deposit of the sponsor");
        }
    }

    function checkCreations() external view {
        for (uint256 i = 0; i < creations.length; ++i) {
            vm.assertEq(address(creations[i].wallet).balance, 1 ether, "balance of an address");
            if (address(creations[i].wallet).code.length == 0) continue;
            vm.assertTrue(i >= 2, "a creation that is bound to its bundler");
            (Config memory config, uint64 configNonce) = creations[i].wallet.configuration();
            vm.assertEq(abi.encode(config), creations[i].config, "configuration of a creation");
            vm.assertEq(configNonce, 1, "configNonce of a creation");
        }
    }

    // ---------------------------------------------------------------------------------- what strangers try

    function _as(address target, uint256 value, bytes memory data) private {
        vm.deal(stranger, 100 ether);
        vm.prank(stranger, stranger);
        (bool success,) = target.call{value: value}(data);
        success;
    }

    /// @notice Calls a function of a wallet that changes something.
    function callWallet(uint8 which, uint8 what, uint256 seed) external {
        Wallet wallet = wallets[which % wallets.length];
        (Config memory current,) = wallet.configuration();
        Config memory config = Configs.valid(current.custody, seed);
        Call[] memory calls = new Call[](1);
        calls[0] = Call(stranger, 1, "");
        address entryPoint = Ops.entryPoint(Version(seed % 3));
        bytes[11] memory data = [
            abi.encodeCall(wallet.setConfig, (config)),
            abi.encodeCall(wallet.setRecovery, (stranger, 48 hours)),
            abi.encodeCall(wallet.startRecovery, (config)),
            abi.encodeCall(wallet.finishRecovery, (config)),
            abi.encodeCall(wallet.cancelRecovery, ()),
            abi.encodeCall(wallet.execute, (stranger, 1, "")),
            abi.encodeCall(wallet.executeBatch, (calls)),
            abi.encodeCall(wallet.withdrawTo, (entryPoint, payable(stranger), 1)),
            abi.encodeCall(wallet.initialize, (config, stranger)),
            abi.encodeWithSignature("upgradeTo(address)", address(hostile)),
            ""
        ];
        _as(address(wallet), what % 11 == 10 ? 1 : 0, data[what % 11]);
    }

    /// @notice Validates an operation with money to be paid, as an EntryPoint would.
    function callValidation(uint8 which, uint8 version, uint64 missing) external {
        Op memory op = pending[version % 3][which % wallets.length];
        bytes32 hash = op.hash(Version(version % 3));
        if (version % 3 == 0) {
            _as(op.sender, 0, abi.encodeWithSelector(0x3a871cdd, op.asV06(), hash, missing));
        } else {
            _as(op.sender, 0, abi.encodeWithSelector(0x19822f7c, op.pack(), hash, missing));
        }
    }

    /// @notice Calls a function of the suite that is its owners'.
    function callSuite(uint8 which, uint8 what, uint256 seed) external {
        address[3] memory targets = [address(beacon), address(factory), address(paymaster)];
        address entryPoint = Ops.entryPoint(Version(seed % 3));
        bytes[10] memory data = [
            abi.encodeCall(beacon.transferOwnership, (stranger)),
            abi.encodeCall(beacon.acceptOwnership, ()),
            abi.encodeCall(beacon.renounceOwnership, ()),
            abi.encodeCall(beacon.upgradeTo, (address(hostile))),
            abi.encodeCall(factory.setDeployer, (stranger)),
            abi.encodeCall(paymaster.setSponsor, (stranger)),
            abi.encodeCall(paymaster.withdrawTo, (entryPoint, payable(stranger), 1)),
            abi.encodeCall(paymaster.unlockStake, (entryPoint)),
            abi.encodeCall(paymaster.withdrawStake, (entryPoint, payable(stranger))),
            abi.encodeCall(paymaster.deposit, (entryPoint))
        ];
        _as(targets[which % 3], 0, data[what % 10]);
    }

    /// @notice Calls anything with any bytes.
    function callRaw(uint8 which, bytes calldata data) external {
        address[7] memory targets = [
            address(wallets[0]),
            address(wallets[1]),
            address(wallets[2]),
            address(factory),
            address(beacon),
            address(paymaster),
            address(implementation)
        ];
        _as(targets[which % 7], 0, data);
    }

    /// @notice Submits an operation of a wallet that a stranger has signed, in every form of a proof.
    function forge(uint8 version, uint8 which, uint8 form, uint256 seed) external {
        Version v = Version(version % 3);
        Wallet wallet = wallets[which % wallets.length];
        bytes memory call = seed % 2 == 0 ? abi.encodeCall(wallet.execute, (stranger, 1 ether, "")) : bytes("");
        Op memory op = _op(v, wallet, call);
        bytes32 hash = op.hash(v);
        uint256[] memory many = new uint256[](1 + (seed >> 8) % 16);
        for (uint256 i = 0; i < many.length; ++i) many[i] = seed >> (16 + i) & 1 == 0 ? STRANGER_KEY : DEPLOYER_KEY;
        bytes[4] memory proofs = [
            Proving.ecdsa(many, hash),
            Proving.personal(STRANGER_KEY, hash),
            Proving.single(Proving.assertion(STRANGER_KEY >> 1, hash, uint8(seed >> 32))),
            abi.encodePacked(new bytes(65))
        ];
        op.signature = _signature(unbound, proofs[form % 4]);
        _submit(v, Ops.only(op), stranger);
    }

    /// @notice Submits an operation that is pending, with its bytes as they are, flipped or cut.
    function copy(uint8 version, uint8 which, uint8 how, uint256 seed) external {
        Op memory op = pending[version % 3][which % wallets.length];
        _mutate(op, how, seed);
        _submit(Version(version % 3), Ops.only(op), stranger);
    }

    /// @notice Submits an operation again that is over.
    function replay(uint8 version, uint8 which, uint8 other, uint8 how, uint256 seed) external {
        Op memory op = over[version % 3][which % wallets.length];
        _mutate(op, how, seed);
        // On its own EntryPoint or another one, with its own nonce or the next one.
        if (seed % 5 == 0) op.nonce += 1;
        _submit(Version(other % 3), Ops.only(op), stranger);
    }

    function _mutate(Op memory op, uint8 how, uint256 seed) private pure {
        bytes memory signature = op.signature;
        if (how % 5 == 1) signature[seed % signature.length] ^= bytes1(uint8(1 << ((seed >> 64) % 8)));
        if (how % 5 == 2) {
            assembly ("memory-safe") {
                mstore(signature, mod(seed, mload(signature)))
            }
        }
        if (how % 5 == 3) op.signature = bytes.concat(signature, abi.encode(seed));
        if (how % 5 == 4) op.preVerificationGas += seed % 1_000_000;
    }

    /// @notice Has a stranger's account submit a pending operation inside another bundle.
    function nest(uint8 outer, uint8 inner, uint8 which, bool direct) external {
        Op memory op = pending[inner % 3][which % wallets.length];
        bytes memory data = direct
            ? abi.encodeCall(Wallet.execute, (stranger, 1, ""))
            : Ops.bundle(Ops.only(op), Version(inner % 3), stranger);
        address target = direct ? op.sender : Ops.entryPoint(Version(inner % 3));
        Op memory own_ = _op(Version(outer % 3), Wallet(payable(address(wallets[0]))), "");
        own_.sender = address(hostile);
        own_.nonce = IEntryPointCommon(Ops.entryPoint(Version(outer % 3))).getNonce(address(hostile), 0);
        own_.callData = abi.encodeCall(hostile.run, (target, data));
        own_.callGasLimit = 5_000_000;
        _submit(Version(outer % 3), Ops.only(own_), stranger);
    }

    /// @notice Uses an authorisation that is pending: directly, or through a SenderCreator; as it is, or for another one.
    function create(uint8 which, uint8 version, uint8 how, uint256 seed) external {
        Creation memory creation = creations[which % creations.length];
        bytes memory data = creation.data;
        if (how % 4 == 1) data[4 + seed % (data.length - 4)] ^= bytes1(uint8(1 << ((seed >> 64) % 8)));
        if (how % 4 == 2) data = _otherConfig(creation, seed);
        bytes memory initCode = abi.encodePacked(address(factory), data);
        if (how % 4 == 3 || seed % 3 == 0) _as(address(factory), 0, data);
        else _as(Ops.senderCreator(Version(version % 3)), 0, abi.encodeCall(ISenderCreator.createSender, (initCode)));
    }

    /// @dev The same authorisation with a configuration of the stranger's.
    function _otherConfig(Creation memory creation, uint256 seed) private view returns (bytes memory) {
        bytes memory arguments = new bytes(creation.data.length - 4);
        for (uint256 i = 0; i < arguments.length; ++i) arguments[i] = creation.data[i + 4];
        (bytes32 saltHash, uint256 custody, bool legacy,, uint48 deadline, bytes memory authorization) =
            abi.decode(arguments, (bytes32, uint256, bool, Config, uint48, bytes));
        Config memory config = Configs.valid(1, seed);
        config.owners[0] = stranger;
        return abi.encodeCall(factory.createWallet, (saltHash, custody, legacy, config, deadline, authorization));
    }

    /// @notice Submits an operation of the stranger's own wallet that is sponsored for another submitter.
    function steal(uint8 version, uint8 how, uint256 seed) external {
        Version v = Version(version % 3);
        Op memory op = sponsored[version % 3];
        if (how % 3 == 1) op.preVerificationGas += seed % 1_000_000;
        bytes32 hash = op.hash(v);
        bytes memory tail = _sponsorship(hash, bundler, how % 3 == 0 ? SPONSOR_KEY : STRANGER_KEY);
        if (how % 3 == 2) tail = _sponsorship(sponsored[version % 3].hash(v), bundler, SPONSOR_KEY);
        if (how % 3 == 2 && seed % 2 == 0) op.paymasterAndData = _sponsorData(v, 0, 0, false);
        op = _signed(op, v, STRANGER_KEY);
        op.signature = bytes.concat(op.signature, tail);
        _submit(v, Ops.only(op), stranger);
    }

    /// @notice Makes an EOA of the stranger's a delegate of the implementation, or of a wallet, and initialises it.
    function delegate(uint8 which, uint256 seed) external {
        address target = which % 4 == 3 ? address(implementation) : address(wallets[which % 4 % wallets.length]);
        address eoa = vm.addr(1 + seed % 1_000);
        if (eoa == stranger) return;
        vm.etch(eoa, abi.encodePacked(hex"ef0100", target));
        Config memory config = Configs.valid(1, seed);
        _as(eoa, 0, abi.encodeCall(Wallet.initialize, (config, stranger)));
        vm.deal(eoa, 1 ether);
        vm.prank(eoa, eoa);
        (bool success,) = address(wallets[seed % wallets.length]).call(
            abi.encodeCall(Wallet.execute, (stranger, 1, ""))
        );
        success;
    }

    function pass(uint16 time) external {
        vm.warp(block.timestamp + time);
    }
}
