// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";
import {Strings} from "@openzeppelin/contracts/utils/Strings.sol";
import {ERC7739Utils} from "@openzeppelin/contracts/utils/cryptography/draft-ERC7739Utils.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {AbstractSigner} from "@openzeppelin/contracts/utils/cryptography/signers/AbstractSigner.sol";
import {ConfigStorage} from "./ConfigStorage.sol";

/// @title Messages
/// @notice ERC-1271 as ERC-7739: a message is nested under the wallet's own EIP-712 domain before it is signed, so that a
/// signature is worthless for any other wallet, and no operation's hash can be passed off as a message.
/// @dev The version of the domain names the configuration: "1" until the first rotation, then "1.1", "1.2" and so on.
/// A signature, and one part of a multisignature, is worth nothing under the next configuration. The version and not the
/// salt: tools leave the salt out of ERC-7739's personal messages, and none leaves out the version.
abstract contract Messages is AbstractSigner, IERC1271, IERC5267 {
    bytes32 private constant DOMAIN_TYPE_HASH =
        keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");

    string private constant NAME = "castellan";

    /// @notice ERC-1271: whether the wallet's validators have signed this message, nested as ERC-7739 says for typed data
    /// and for personal messages. Callable by any address.
    /// @param hash Hash of the message as the asking application knows it: EIP-712 or EIP-191.
    /// @param signature A proof in a form of {Proofs}; for typed data followed by the application's domain separator, the
    /// hash of the contents, the description of their type and its length (2 bytes).
    /// @return result 0x1626ba7e if they have signed, otherwise 0xffffffff. 0x77390001 for the hash 0x7739...7739
    /// without a signature, by which ERC-7739 detects wallets that nest messages.
    function isValidSignature(bytes32 hash, bytes calldata signature) external view returns (bytes4 result) {
        if (_isTypedData(hash, signature) || _isPersonal(hash, signature)) return IERC1271.isValidSignature.selector;
        bool asked = hash == 0x7739773977397739773977397739773977397739773977397739773977397739;
        return asked && signature.length == 0 ? bytes4(0x77390001) : bytes4(0xffffffff);
    }

    /// @notice ERC-5267: the domain that nests messages. It changes with every rotation and recovery.
    /// @return fields 0x0f: name, version, chain id and verifying contract are used, salt and extensions are not.
    /// @return name "castellan".
    /// @return version "1" under the first configuration, "1.1" under the second one, "1.2" under the third one.
    /// @return chainId Of this chain.
    /// @return verifyingContract This wallet.
    /// @return salt Zero.
    /// @return extensions None.
    function eip712Domain()
        external
        view
        returns (
            bytes1 fields,
            string memory name,
            string memory version,
            uint256 chainId,
            address verifyingContract,
            bytes32 salt,
            uint256[] memory extensions
        )
    {
        return (hex"0f", NAME, _version(), block.chainid, address(this), 0, extensions);
    }

    function _isPersonal(bytes32 hash, bytes calldata signature) private view returns (bool) {
        bytes32 separator = keccak256(bytes.concat(DOMAIN_TYPE_HASH, _domain()));
        bytes32 nested = ERC7739Utils.personalSignStructHash(hash);
        return _rawSignatureValidation(MessageHashUtils.toTypedDataHash(separator, nested), signature);
    }

    function _isTypedData(bytes32 hash, bytes calldata encoded) private view returns (bool) {
        (bytes calldata proof, bytes32 separator, bytes32 contentsHash, string calldata description) =
            ERC7739Utils.decodeTypedDataSig(encoded);
        if (hash != MessageHashUtils.toTypedDataHash(separator, contentsHash)) return false;
        bytes32 nested =
            ERC7739Utils.typedDataSignStructHash(description, contentsHash, bytes.concat(_domain(), bytes32(0)));
        // Zero: the description names no type.
        return nested != 0 && _rawSignatureValidation(MessageHashUtils.toTypedDataHash(separator, nested), proof);
    }

    /// @dev The encoded values of the domain, without its type and without a salt.
    function _domain() private view returns (bytes memory) {
        return abi.encode(keccak256(bytes(NAME)), keccak256(bytes(_version())), block.chainid, address(this));
    }

    function _version() private view returns (string memory) {
        uint256 epoch = ConfigStorage.epoch(ConfigStorage.get());
        return epoch == 0 ? "1" : string.concat("1.", Strings.toString(epoch));
    }
}
