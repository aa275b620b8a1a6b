// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {Config} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {IEntryPointCommon, Op, Ops, Version} from "./Ops.sol";
import {Proving} from "./Proving.sol";
import {Suite} from "./Suite.sol";
import {vm} from "./Vm.sol";

/// @notice Conditions of an operation's signature.
struct Terms {
    uint48 validUntil;
    uint48 validAfter;
    address bundler;
}

/// @notice A deployer's authorisation.
struct Grant {
    bytes32 saltHash;
    uint256 custody;
    bool legacy;
    bytes32 configHash;
    uint48 deadline;
    address bundler;
}

/// @notice The layouts of docs/contracts.md, written down apart from the contracts, and what is done with them.
abstract contract WalletTest is Suite {
    using Ops for Op;

    Terms internal unbound;

    uint256 internal constant FUNDS = 5 ether;

    uint256 private _salts;

    // ------------------------------------------------------------------------------------------ signing

    /// @notice The hash that a proof signs.
    function _signingHash(bytes32 userOpHash, Terms memory terms) internal pure returns (bytes32) {
        if (terms.validUntil == 0 && terms.validAfter == 0 && terms.bundler == address(0)) return userOpHash;
        bytes32 domain = keccak256(
            abi.encode(keccak256("EIP712Domain(string name,string version)"), keccak256("castellan"), keccak256("1"))
        );
        bytes32 typeHash =
            keccak256("Conditions(bytes32 userOpHash,uint48 validUntil,uint48 validAfter,address bundler)");
        return MessageHashUtils.toTypedDataHash(
            domain, keccak256(abi.encode(typeHash, userOpHash, terms.validUntil, terms.validAfter, terms.bundler))
        );
    }

    /// @notice op.signature of a proof.
    function _signature(Terms memory terms, bytes memory proof) internal pure returns (bytes memory) {
        return abi.encode(terms.validUntil, terms.validAfter, terms.bundler, proof);
    }

    /// @notice Signs with secp256k1 keys.
    function _signed(Op memory op, Version version, uint256[] memory keys, Terms memory terms)
        internal
        view
        returns (Op memory)
    {
        op.signature = _signature(terms, Proving.ecdsa(keys, _signingHash(op.hash(version), terms)));
        return op;
    }

    function _signed(Op memory op, Version version, uint256 key) internal view returns (Op memory) {
        uint256[] memory keys = new uint256[](1);
        keys[0] = key;
        return _signed(op, version, keys, unbound);
    }

    function _domain(address verifyingContract) internal view returns (bytes32) {
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256("castellan"),
                keccak256("1"),
                block.chainid,
                verifyingContract
            )
        );
    }

    /// @notice The domain of a wallet's messages, by what the wallet says of it.
    function _walletDomain(Wallet wallet) internal view returns (bytes32) {
        (, string memory name, string memory version, uint256 chainId, address verifyingContract,,) =
            wallet.eip712Domain();
        return keccak256(
            abi.encode(
                keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)"),
                keccak256(bytes(name)),
                keccak256(bytes(version)),
                chainId,
                verifyingContract
            )
        );
    }

    // --------------------------------------------------------------------------------------- operations

    /// @notice The key of the nonces that an operation of this wallet has in lane `lane`: the configuration is in it.
    function _nonceKey(Wallet wallet, uint128 lane) internal view returns (uint192) {
        uint64 epoch;
        if (address(wallet).code.length > 0) {
            (, uint64 configNonce) = wallet.configuration();
            epoch = configNonce - 1;
        }
        return (uint192(epoch) << 128) | lane;
    }

    function _nonce(Version version, Wallet wallet, uint128 lane) internal view returns (uint256) {
        return IEntryPointCommon(Ops.entryPoint(version)).getNonce(address(wallet), _nonceKey(wallet, lane));
    }

    /// @notice An unsigned operation with generous limits and the next nonce.
    function _op(Version version, Wallet wallet, bytes memory callData) internal view returns (Op memory op) {
        op.sender = address(wallet);
        op.nonce = _nonce(version, wallet, 0);
        op.callData = callData;
        op.callGasLimit = 1_000_000;
        op.verificationGasLimit = 2_000_000;
        op.preVerificationGas = 60_000;
        op.maxFeePerGas = 1 gwei;
        op.maxPriorityFeePerGas = 1 gwei;
    }

    /// @notice Signs with one key, under conditions.
    function _signed(Op memory op, Version version, uint256 key, Terms memory terms)
        internal
        view
        returns (Op memory)
    {
        uint256[] memory keys = new uint256[](1);
        keys[0] = key;
        return _signed(op, version, keys, terms);
    }

    /// @notice Signs with a passkey of that index.
    function _signedByPasskey(Op memory op, Version version, uint256 key, uint8 index)
        internal
        view
        returns (Op memory)
    {
        op.signature = _signature(unbound, Proving.single(Proving.assertion(key, op.hash(version), index)));
        return op;
    }

    /// @notice Submits a bundle as `by`; reverts as the EntryPoint does.
    function _handle(Version version, Op[] memory ops, address by) internal {
        (bool success, bytes memory result) = _submit(version, ops, by);
        if (!success) {
            assembly ("memory-safe") {
                revert(add(result, 32), mload(result))
            }
        }
    }

    function _handle(Version version, Op memory op) internal {
        _handle(version, Ops.only(op), bundler);
    }

    function _submit(Version version, Op[] memory ops, address by) internal returns (bool, bytes memory) {
        bytes memory data = Ops.bundle(ops, version, by);
        address entryPoint = Ops.entryPoint(version);
        vm.prank(by, by);
        return entryPoint.call(data);
    }

    /// @notice Submits the operation and requires that the EntryPoint refuses it for this reason.
    function _refused(Version version, Op memory op, string memory reason) internal {
        (bool success, bytes memory result) = _submit(version, Ops.only(op), bundler);
        vm.assertFalse(success, reason);
        vm.assertEq(result, abi.encodeWithSelector(IEntryPointCommon.FailedOp.selector, 0, reason), reason);
    }

    /// @notice As {_refused}, where the wallet, factory or paymaster reverts with `inner`.
    function _reverted(Version version, Op memory op, string memory reason, bytes memory inner) internal {
        (bool success, bytes memory result) = _submit(version, Ops.only(op), bundler);
        vm.assertFalse(success, reason);
        bytes memory expected = version == Version.V06
            ? abi.encodeWithSelector(IEntryPointCommon.FailedOp.selector, 0, string.concat(reason, " (or OOG)"))
            : abi.encodeWithSelector(IEntryPointCommon.FailedOpWithRevert.selector, 0, reason, inner);
        vm.assertEq(result, expected, reason);
    }

    // ------------------------------------------------------------------------------------- sponsorship

    /// @notice paymasterAndData of the suite's paymaster; one byte longer where the sponsorship names no submitter.
    function _sponsorData(Version version, uint48 validUntil, uint48 validAfter, bool bound)
        internal
        view
        returns (bytes memory)
    {
        bytes memory limits = version == Version.V06 ? bytes("") : abi.encodePacked(uint128(200_000), uint128(0));
        bytes memory mark = bound ? bytes("") : bytes(hex"01");
        return bytes.concat(abi.encodePacked(address(paymaster)), limits, abi.encodePacked(validUntil, validAfter), mark);
    }

    /// @notice The sponsor's r || s || v. No submitter is the zero address.
    function _sponsorship(bytes32 userOpHash, address submitter, uint256 key) internal view returns (bytes memory) {
        bytes32 typeHash = keccak256("Sponsorship(bytes32 userOpHash,address bundler)");
        return Proving.ecdsa(
            key,
            MessageHashUtils.toTypedDataHash(
                _domain(address(paymaster)), keccak256(abi.encode(typeHash, userOpHash, submitter))
            )
        );
    }

    /// @notice Signs for a wallet of custody 1, and for the sponsor, who names {bundler}.
    function _sponsored(Op memory op, Version version, uint256 key) internal view returns (Op memory) {
        op.paymasterAndData = _sponsorData(version, 0, 0, true);
        op = _signed(op, version, key);
        op.signature = bytes.concat(op.signature, _sponsorship(op.hash(version), bundler, SPONSOR_KEY));
        return op;
    }

    // ---------------------------------------------------------------------------------------- creation

    /// @notice The deployer's r || s || v; one byte longer where it names no submitter.
    function _authorization(Grant memory grant, uint256 key) internal view returns (bytes memory) {
        bytes32 typeHash = keccak256(
            "Deploy(bytes32 saltHash,uint256 custody,bool legacy,bytes32 configHash,uint48 deadline,address bundler)"
        );
        bytes memory signature = Proving.ecdsa(
            key,
            MessageHashUtils.toTypedDataHash(
                _domain(address(factory)),
                keccak256(
                    abi.encode(
                        typeHash,
                        grant.saltHash,
                        grant.custody,
                        grant.legacy,
                        grant.configHash,
                        grant.deadline,
                        grant.bundler
                    )
                )
            )
        );
        return grant.bundler == address(0) ? bytes.concat(signature, hex"01") : signature;
    }

    /// @notice The deployer's usual authorisation: this configuration, for ten minutes.
    function _grant(bytes32 saltHash, Config memory config) internal view returns (Grant memory) {
        return Grant(
            saltHash, config.custody, false, Proving.hashOf(config), uint48(block.timestamp + 600), bundler
        );
    }

    /// @notice Calldata of `createWallet`.
    function _creation(Grant memory grant, Config memory config, bytes memory authorization)
        internal
        view
        returns (bytes memory)
    {
        return abi.encodeCall(
            factory.createWallet,
            (grant.saltHash, grant.custody, grant.legacy, config, grant.deadline, authorization)
        );
    }

    function _creation(bytes32 saltHash, Config memory config) internal view returns (bytes memory) {
        Grant memory grant = _grant(saltHash, config);
        return _creation(grant, config, _authorization(grant, DEPLOYER_KEY));
    }

    function _predicted(bytes32 saltHash, uint256 custody) internal view returns (Wallet) {
        return Wallet(payable(factory.getAddress(saltHash, custody, false)));
    }

    /// @notice The operation that creates a wallet, signed by the deployer.
    function _creationOp(Version version, bytes32 saltHash, Config memory config) internal view returns (Op memory op) {
        op = _op(version, _predicted(saltHash, config.custody), "");
        op.initCode = abi.encodePacked(address(factory), _creation(saltHash, config));
        return _signed(op, version, DEPLOYER_KEY);
    }

    /// @notice Creates a wallet through EntryPoint v0.7 and gives it {FUNDS}.
    function _wallet(Config memory config) internal returns (Wallet wallet) {
        bytes32 saltHash = keccak256(abi.encode("wallet", ++_salts));
        wallet = _predicted(saltHash, config.custody);
        vm.deal(address(wallet), 1 ether);
        _handle(Version.V07, _creationOp(Version.V07, saltHash, config));
        vm.deal(address(wallet), FUNDS);
    }

    /// @notice A wallet of custody 1 whose owner is key number `n`.
    function _ecdsaWallet(uint256 n) internal returns (Wallet wallet, uint256 key) {
        uint256[] memory keys = Proving.owners(n, 1);
        return (_wallet(Proving.config(1, 1, keys, new uint256[](0))), keys[0]);
    }

    /// @notice A wallet of custody 5 with one passkey.
    function _passkeyWallet(uint256 n) internal returns (Wallet wallet, uint256 key) {
        uint256[] memory keys = Proving.passkeys(n, 1);
        return (_wallet(Proving.config(5, 1, new uint256[](0), keys)), keys[0]);
    }

    /// @notice A wallet of custody 3 with a threshold of two of three.
    function _multisigWallet(uint256 n) internal returns (Wallet wallet, uint256[] memory keys) {
        keys = Proving.owners(n, 3);
        return (_wallet(Proving.config(3, 2, keys, new uint256[](0))), keys);
    }
}
