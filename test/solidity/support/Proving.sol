// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Base64} from "@openzeppelin/contracts/utils/Base64.sol";
import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {WebAuthn} from "@openzeppelin/contracts/utils/cryptography/WebAuthn.sol";
import {MixedProof, PasskeyProof} from "../../../contracts/src/Proofs.sol";
import {Config, PublicKey} from "../../../contracts/src/Types.sol";
import {vm} from "./Vm.sol";

/// @notice Proofs made of private keys, and configurations made of their public halves.
library Proving {
    uint256 internal constant N_SECP256K1 = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141;
    uint256 internal constant N_P256 = 0xffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551;

    /// @notice User present and user verified.
    bytes1 internal constant PRESENT_AND_VERIFIED = 0x05;

    // ------------------------------------------------------------------------------------ configurations

    /// @notice `n` secp256k1 keys, ascending by their addresses: those with the numbers from `first` on.
    function owners(uint256 first, uint256 n) internal pure returns (uint256[] memory keys) {
        keys = new uint256[](n);
        uint256[] memory ranks = new uint256[](n);
        for (uint256 i = 0; i < n; ++i) {
            keys[i] = uint256(keccak256(abi.encode("owner", first + i)));
            ranks[i] = uint160(vm.addr(keys[i]));
        }
        _sort(keys, ranks);
    }

    /// @notice `n` P-256 keys, ascending by their points.
    function passkeys(uint256 first, uint256 n) internal pure returns (uint256[] memory keys) {
        keys = new uint256[](n);
        uint256[] memory ranks = new uint256[](n);
        for (uint256 i = 0; i < n; ++i) {
            keys[i] = uint256(keccak256(abi.encode("passkey", first + i))) >> 1;
            ranks[i] = uint256(point(keys[i]).x);
        }
        _sort(keys, ranks);
    }

    function _sort(uint256[] memory keys, uint256[] memory ranks) private pure {
        for (uint256 i = 1; i < keys.length; ++i) {
            for (uint256 j = i; j > 0 && ranks[j - 1] > ranks[j]; --j) {
                (ranks[j - 1], ranks[j]) = (ranks[j], ranks[j - 1]);
                (keys[j - 1], keys[j]) = (keys[j], keys[j - 1]);
            }
        }
    }

    function point(uint256 key) internal pure returns (PublicKey memory) {
        (uint256 x, uint256 y) = vm.publicKeyP256(key);
        return PublicKey(bytes32(x), bytes32(y));
    }

    function config(uint8 custody, uint8 threshold, uint256[] memory ownerKeys, uint256[] memory passkeyKeys)
        internal
        pure
        returns (Config memory made)
    {
        made.custody = custody;
        made.threshold = threshold;
        made.owners = new address[](ownerKeys.length);
        for (uint256 i = 0; i < ownerKeys.length; ++i) made.owners[i] = vm.addr(ownerKeys[i]);
        made.passkeys = new PublicKey[](passkeyKeys.length);
        for (uint256 i = 0; i < passkeyKeys.length; ++i) made.passkeys[i] = point(passkeyKeys[i]);
    }

    function hashOf(Config memory made) internal pure returns (bytes32) {
        return keccak256(abi.encode(made));
    }

    // --------------------------------------------------------------------------------------------- ECDSA

    /// @notice r || s || v.
    function ecdsa(uint256 key, bytes32 hash) internal pure returns (bytes memory) {
        (uint8 v, bytes32 r, bytes32 s) = vm.sign(key, hash);
        return abi.encodePacked(r, s, v);
    }

    /// @notice r || s || v of each key, in their order.
    function ecdsa(uint256[] memory keys, bytes32 hash) internal pure returns (bytes memory parts) {
        for (uint256 i = 0; i < keys.length; ++i) parts = bytes.concat(parts, ecdsa(keys[i], hash));
    }

    /// @notice r || s || v over the EIP-191 form of the hash.
    function personal(uint256 key, bytes32 hash) internal pure returns (bytes memory) {
        return ecdsa(key, MessageHashUtils.toEthSignedMessageHash(hash));
    }

    /// @notice The other signature of the same key over the same hash: s in the other half of the order.
    function flipped(bytes memory signature) internal pure returns (bytes memory) {
        bytes32 r;
        uint256 s;
        assembly ("memory-safe") {
            r := mload(add(signature, 32))
            s := mload(add(signature, 64))
        }
        return abi.encodePacked(r, N_SECP256K1 - s, signature[64] == 0x1b ? uint8(28) : uint8(27));
    }

    // ---------------------------------------------------------------------------------------- passkeys

    /// @notice A browser's response to this challenge, s in the low half.
    function assertion(uint256 key, bytes32 hash, uint8 index) internal pure returns (PasskeyProof memory) {
        return assertion(key, hash, index, PRESENT_AND_VERIFIED, "webauthn.get");
    }

    function assertion(uint256 key, bytes32 hash, uint8 index, bytes1 flags, string memory kind)
        internal
        pure
        returns (PasskeyProof memory)
    {
        string memory start = string.concat('{"type":"', kind, '",');
        string memory json = string.concat(
            start, '"challenge":"', Base64.encodeURL(abi.encodePacked(hash)), '","origin":"https://wallet.example"}'
        );
        return signed(key, index, flags, json, 1, bytes(start).length);
    }

    /// @notice An assertion over this client data.
    function signed(
        uint256 key,
        uint8 index,
        bytes1 flags,
        string memory json,
        uint256 typeIndex,
        uint256 challengeIndex
    ) internal pure returns (PasskeyProof memory) {
        bytes memory data = abi.encodePacked(sha256("wallet.example"), flags, uint32(1));
        (bytes32 r, bytes32 s) = vm.signP256(key, sha256(abi.encodePacked(data, sha256(bytes(json)))));
        if (uint256(s) > N_P256 / 2) s = bytes32(N_P256 - uint256(s));
        return PasskeyProof(index, WebAuthn.WebAuthnAuth(r, s, challengeIndex, typeIndex, data, json));
    }

    /// @notice The ABI form of a proof.
    function mixed(bytes memory parts, PasskeyProof[] memory assertions) internal pure returns (bytes memory) {
        return abi.encode(parts, assertions);
    }

    /// @notice The ABI form of a proof by one passkey.
    function single(PasskeyProof memory by) internal pure returns (bytes memory) {
        PasskeyProof[] memory assertions = new PasskeyProof[](1);
        assertions[0] = by;
        return mixed("", assertions);
    }
}
