// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Account} from "@openzeppelin/contracts/account/Account.sol";
import {IAccount, IEntryPoint, IEntryPointStake, PackedUserOperation} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {IERC721Receiver} from "@openzeppelin/contracts/token/ERC721/IERC721Receiver.sol";
import {ERC721Holder} from "@openzeppelin/contracts/token/ERC721/utils/ERC721Holder.sol";
import {ERC1155Holder} from "@openzeppelin/contracts/token/ERC1155/utils/ERC1155Holder.sol";
import {Call, Config, IWallet, UserOperationV06} from "./Types.sol";
import {ConfigRules} from "./ConfigRules.sol";
import {ConfigStorage} from "./ConfigStorage.sol";
import {Conditions} from "./Conditions.sol";
import {CustodyValidator} from "./CustodyValidator.sol";
import {Messages} from "./Messages.sol";
import {MixedProof, OpSignature, PasskeyProof, Proofs} from "./Proofs.sol";
import {Rotation} from "./Rotation.sol";

/// @title Wallet
/// @notice Implementation behind every wallet proxy: an ERC-4337 account for EntryPoint v0.6, v0.7 and v0.8 whose
/// validators are a {Config}.
/// @dev An operation's signature is an {OpSignature}: abi.encode(uint48 validUntil, uint48 validAfter, address bundler,
/// bytes proof). The proof is over the signing hash of {Conditions}, in a form of {Proofs}.
///
/// The top 64 bits of an operation's nonce are the number of earlier configurations of the wallet: 0 until the first
/// rotation. userOpHash covers the nonce, so that a signature for one configuration is worthless under the next one.
contract Wallet is IWallet, Account, Messages, Rotation, ERC721Holder, ERC1155Holder {
    using ConfigStorage for ConfigStorage.Layout;

    IEntryPoint private immutable ENTRY_POINT_V06;
    IEntryPoint private immutable ENTRY_POINT_V07;
    IEntryPoint private immutable ENTRY_POINT_V08;
    CustodyValidator private immutable VALIDATOR;

    /// @dev The signer of the operation that creates this wallet: set by {initialize}, cleared by the first validation,
    /// gone with the transaction. A standing authority would be a drain, even over operations without a call: their
    /// preVerificationGas pays their submitter.
    address private transient _creationDeployer;

    /// @notice {initialize} was called on a wallet that has a configuration, or on the implementation.
    error AlreadyInitialized();
    /// @notice {initialize} was called on an EOA that delegates its code (EIP-7702).
    error DelegatedAccount();
    /// @notice {withdrawTo} was called for a contract other than the accepted EntryPoints.
    /// @param entryPoint The address that was given.
    error UnknownEntryPoint(address entryPoint);

    /// @param entryPointV06 The only EntryPoint that may validate operations of v0.6.
    /// @param entryPointV07 One of the two that may validate packed operations.
    /// @param entryPointV08 The other one.
    /// @param custodyValidator Verifies the proofs of custodies 2 to 5.
    constructor(address entryPointV06, address entryPointV07, address entryPointV08, address custodyValidator) {
        ENTRY_POINT_V06 = IEntryPoint(entryPointV06);
        ENTRY_POINT_V07 = IEntryPoint(entryPointV07);
        ENTRY_POINT_V08 = IEntryPoint(entryPointV08);
        VALIDATOR = CustodyValidator(custodyValidator);
        ConfigStorage.get().lock();
    }

    // ---------------------------------------------------------------------------------------- creation

    /// @inheritdoc IWallet
    /// @dev Works once per wallet. The factory calls it in the transaction that deploys the proxy. A proxy deployed
    /// by another contract, at another address, belongs to its initialiser. An EOA that delegates to this code or to a
    /// proxy (EIP-7702) is refused: nothing would bind its first configuration to the key of the EOA.
    function initialize(Config calldata config, address deployer) external {
        if (_isDelegated()) revert DelegatedAccount();
        ConfigStorage.Layout storage stored = ConfigStorage.get();
        if (stored.configNonce != 0) revert AlreadyInitialized();
        ConfigRules.check(config);
        stored.install(config);
        _creationDeployer = deployer;
    }

    /// @dev Whether this account's own code is a delegation: 0xef0100 and an address. No contract's code begins with 0xef.
    function _isDelegated() private view returns (bool delegated) {
        assembly ("memory-safe") {
            if eq(extcodesize(address()), 23) {
                extcodecopy(address(), 0, 0, 3)
                delegated := eq(shr(232, mload(0)), 0xef0100)
            }
        }
    }

    // -------------------------------------------------------------------------------------- validation

    /// @notice Whether an operation of EntryPoint v0.7 or v0.8 is signed as it should be. Only for those two EntryPoints.
    /// Reverts when the signature cannot be decoded.
    /// @param userOp The operation, as the EntryPoint was given it.
    /// @param userOpHash Its hash, guaranteed by the EntryPoint.
    /// @param missingAccountFunds Wei that the wallet has to add to its deposit, and does.
    /// @return validationData From the low bits: 1 for a wrong signature, otherwise 0 (160 bits), validUntil (48),
    /// validAfter (48).
    function validateUserOp(PackedUserOperation calldata userOp, bytes32 userOpHash, uint256 missingAccountFunds)
        public
        override(Account)
        onlyEntryPoint
        returns (uint256 validationData)
    {
        validationData = _validate(userOp.signature, userOpHash, userOp.nonce, userOp.callData.length == 0);
        _payPrefund(missingAccountFunds);
    }

    /// @notice Whether an operation of EntryPoint v0.6 is signed as it should be. Only for that EntryPoint. Reverts when
    /// the signature cannot be decoded.
    /// @param userOp The operation, as the EntryPoint was given it.
    /// @param userOpHash Its hash, guaranteed by the EntryPoint.
    /// @param missingAccountFunds Wei that the wallet has to add to its deposit, and does.
    /// @return validationData From the low bits: 1 for a wrong signature, otherwise 0 (160 bits), validUntil (48),
    /// validAfter (48).
    function validateUserOp(UserOperationV06 calldata userOp, bytes32 userOpHash, uint256 missingAccountFunds)
        external
        returns (uint256 validationData)
    {
        if (msg.sender != address(ENTRY_POINT_V06)) revert AccountUnauthorized(msg.sender);
        validationData = _validate(userOp.signature, userOpHash, userOp.nonce, userOp.callData.length == 0);
        _payPrefund(missingAccountFunds);
    }

    /// @dev ERC-4337 validation data: the window, and 1 as the authorizer when the proof, the bundler or the configuration
    /// that the nonce names is wrong. Reverts when the signature cannot be decoded.
    function _validate(bytes calldata signature, bytes32 userOpHash, uint256 nonce, bool callsNothing)
        internal
        virtual
        returns (uint256)
    {
        OpSignature calldata signed = Proofs.decodeSignature(signature);
        address bundler = signed.bundler;
        bytes32 hash = Conditions.signingHash(userOpHash, signed.validUntil, signed.validAfter, bundler);

        uint256 head = ConfigStorage.get().head();
        address deployer = _creationDeployer;
        if (deployer != address(0)) _creationDeployer = address(0);

        bool valid = deployer != address(0) && callsNothing
            ? Proofs.isBy(signed.proof, deployer, hash)
            : _isByValidators(head, hash, signed.proof);
        if (bundler != address(0) && bundler != tx.origin) valid = false;
        if (!_isOfConfiguration(head, nonce)) valid = false;
        uint256 window = Conditions.window(signed.validUntil, signed.validAfter);
        return valid ? window : window | Conditions.FAILED;
    }

    /// @dev Whether the top 64 bits of the nonce name the configuration in force, whose number `head` contains. A wallet
    /// without a configuration accepts no nonce.
    function _isOfConfiguration(uint256 head, uint256 nonce) internal pure returns (bool) {
        return (nonce >> 192) + 1 == uint64(head >> 32);
    }

    /// @dev Whether `proof` meets the configuration whose slot 0 is `head`. Reverts on a proof that is of no known
    /// form. Where one signature decides, it is verified here and only its key is read; all else is the validator's.
    function _isByValidators(uint256 head, bytes32 hash, bytes calldata proof) internal view returns (bool) {
        uint8 custody = uint8(head);
        if (proof.length == Proofs.PART && (custody == ConfigRules.ECDSA || custody == ConfigRules.ECDSA_PASSKEY))
            return Proofs.isBy(proof, address(uint160(head >> 96)), hash);
        ConfigStorage.Layout storage stored = ConfigStorage.get();
        if (!Proofs.isEcdsa(proof) && (custody == ConfigRules.PASSKEY || custody == ConfigRules.ECDSA_PASSKEY)) {
            MixedProof calldata mixed = Proofs.decodeMixed(proof);
            PasskeyProof[] calldata assertions = mixed.passkeys;
            if (mixed.ecdsa.length == 0 && assertions.length == 1) {
                PasskeyProof calldata assertion = assertions[0];
                uint8 index = assertion.index;
                return index < uint8(head >> 24) && Proofs.isBy(assertion.auth, stored.passkeys[index], hash);
            }
        }
        return VALIDATOR.verify(stored.load(), hash, proof);
    }

    /// @dev ERC-1271 as ERC-7739: `hash` is nested under this wallet's own domain already, so a signature is worthless
    /// for any other wallet, and no operation's hash can be passed off as a message. A malformed proof is wrong, not an error.
    function _rawSignatureValidation(bytes32 hash, bytes calldata signature) internal view override returns (bool) {
        try this.isSignedByValidators(hash, signature) returns (bool valid) {
            return valid;
        } catch {
            return false;
        }
    }

    /// @notice Whether `proof` is by enough of this wallet's validators over `hash`. Reverts on a proof of no known form.
    /// Only for the wallet itself.
    /// @param hash The signed hash.
    /// @param proof The signatures, in a form of {Proofs}.
    /// @return Whether the threshold is met.
    /// @dev Not ERC-1271: the hash is used unchanged and bound to no wallet. Only this wallet may rely on the answer.
    function isSignedByValidators(bytes32 hash, bytes calldata proof) external view onlySelf returns (bool) {
        return _isByValidators(ConfigStorage.get().head(), hash, proof);
    }

    /// @dev The packed {validateUserOp} is for these two; v0.6 has its own.
    function _checkEntryPoint() internal view override {
        if (msg.sender != address(ENTRY_POINT_V07) && msg.sender != address(ENTRY_POINT_V08))
            revert AccountUnauthorized(msg.sender);
    }

    function _checkEntryPointOrSelf() internal view override {
        if (msg.sender != address(this) && !_isEntryPoint(msg.sender)) revert AccountUnauthorized(msg.sender);
    }

    function _isEntryPoint(address account) private view returns (bool) {
        return account == address(ENTRY_POINT_V07) || account == address(ENTRY_POINT_V08)
            || account == address(ENTRY_POINT_V06);
    }

    // --------------------------------------------------------------------------------------- execution

    /// @notice Makes one call. Only for an EntryPoint, or the wallet itself.
    /// @param target The called contract.
    /// @param value Wei that go with the call.
    /// @param data Calldata.
    /// @return The target's return data. A revert of the target is passed on unchanged.
    function execute(address target, uint256 value, bytes calldata data)
        external
        payable
        onlyEntryPointOrSelf
        returns (bytes memory)
    {
        return _call(target, value, data);
    }

    /// @notice Makes all calls in order, or none. Only for an EntryPoint, or the wallet itself.
    /// @param calls What to call; none is nothing to do.
    /// @return results The return data of each. The first revert is passed on unchanged.
    function executeBatch(Call[] calldata calls)
        external
        payable
        onlyEntryPointOrSelf
        returns (bytes[] memory results)
    {
        results = new bytes[](calls.length);
        for (uint256 i = 0; i < calls.length; ++i) {
            results[i] = _call(calls[i].target, calls[i].value, calls[i].data);
        }
    }

    function _call(address target, uint256 value, bytes calldata data) private returns (bytes memory result) {
        bool success;
        (success, result) = target.call{value: value}(data);
        if (!success) {
            assembly ("memory-safe") {
                revert(add(result, 32), mload(result))
            }
        }
    }

    /// @notice Takes wei out of this wallet's deposit at an accepted EntryPoint. Only for the wallet itself.
    /// @param entryPoint_ One of the three EntryPoints; reverts with {UnknownEntryPoint} for another address.
    /// @param to The recipient.
    /// @param amount Wei.
    function withdrawTo(address entryPoint_, address payable to, uint256 amount) external onlySelf {
        if (!_isEntryPoint(entryPoint_)) revert UnknownEntryPoint(entryPoint_);
        IEntryPointStake(entryPoint_).withdrawTo(to, amount);
    }

    // -------------------------------------------------------------------------------------------- views

    /// @inheritdoc IWallet
    function configuration() external view returns (Config memory config, uint64 configNonce) {
        return (ConfigStorage.get().load(), ConfigStorage.get().configNonce);
    }

    /// @notice The contract that verifies the proofs of custodies 2 to 5. Callable by any address.
    /// @return Its address: a {CustodyValidator}.
    function validator() external view returns (address) {
        return address(VALIDATOR);
    }

    /// @notice EntryPoint v0.7, whose nonces {getNonce} reports. Nonces of v0.6 and v0.8 are accepted as well. Callable by
    /// any address.
    /// @return Its address.
    function entryPoint() public view override returns (IEntryPoint) {
        return ENTRY_POINT_V07;
    }

    /// @notice The nonce of the next operation with this key on EntryPoint v0.7, under the configuration in force. The
    /// function without a parameter is of key 0.
    /// @param key The caller's choice in its low 128 bits; the high 64 are replaced by the epoch.
    /// @return The whole nonce: epoch (64 bits), key (128), sequence (64).
    function getNonce(uint192 key) public view override returns (uint256) {
        return super.getNonce(uint192(ConfigStorage.get().epoch()) << 128 | uint128(key));
    }

    /// @notice Whether operations may come from a contract. Callable by any address.
    /// @param account The contract.
    /// @return Whether it is one of the three accepted EntryPoints.
    function isEntryPoint(address account) external view returns (bool) {
        return _isEntryPoint(account);
    }

    /// @notice ERC-165. Callable by any address.
    /// @param interfaceId An interface's identifier, 4 bytes.
    /// @return Whether it is that of ERC-165, of an ERC-4337 account, ERC-1271, or a receiver of ERC-721 or ERC-1155.
    function supportsInterface(bytes4 interfaceId) public view override returns (bool) {
        return interfaceId == type(IAccount).interfaceId || interfaceId == type(IERC1271).interfaceId
            || interfaceId == type(IERC721Receiver).interfaceId || super.supportsInterface(interfaceId);
    }
}
