// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {MessageHashUtils} from "@openzeppelin/contracts/utils/cryptography/MessageHashUtils.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Op, Ops, Version} from "../support/Ops.sol";
import {Proving} from "../support/Proving.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract IsValidSignatureTest is WalletTest {
    using Ops for Op;

    bytes4 private constant VALID = 0x1626ba7e;
    bytes4 private constant INVALID = 0xffffffff;
    string private constant CONTENTS = "Mail(string text)";

    function _is(Wallet wallet, bytes32 hash, bytes memory signature, bytes4 expected, string memory what) private view {
        vm.assertEq(bytes32(wallet.isValidSignature(hash, signature)), bytes32(expected), what);
    }

    /// @dev The struct hash that contains a personal message's hash.
    function _personal(Wallet wallet, bytes32 hash) private view returns (bytes32) {
        return MessageHashUtils.toTypedDataHash(
            _walletDomain(wallet), keccak256(abi.encode(keccak256("PersonalSign(bytes prefixed)"), hash))
        );
    }

    /// @dev Typed data of an application with that domain, and what its hash is nested into.
    function _typed(Wallet wallet, bytes32 domain, bytes32 contents) private view returns (bytes32, bytes32) {
        (, string memory name, string memory version,,,,) = wallet.eip712Domain();
        bytes32 structHash = keccak256(
            abi.encode(
                keccak256(
                    bytes.concat(
                        "TypedDataSign(Mail contents,string name,string version,uint256 chainId,",
                        "address verifyingContract,bytes32 salt)",
                        bytes(CONTENTS)
                    )
                ),
                contents,
                keccak256(bytes(name)),
                keccak256(bytes(version)),
                block.chainid,
                address(wallet),
                bytes32(0)
            )
        );
        return (
            MessageHashUtils.toTypedDataHash(domain, contents), MessageHashUtils.toTypedDataHash(domain, structHash)
        );
    }

    /// @dev ERC-7739's form of a signature over typed data.
    function _nested(bytes memory proof, bytes32 domain, bytes32 contents) private pure returns (bytes memory) {
        return abi.encodePacked(proof, domain, contents, CONTENTS, uint16(bytes(CONTENTS).length));
    }

    function testFuzz_a_personal_message_is_nested_under_the_wallets_domain(bytes32 hash) external {
        (Wallet wallet, uint256 key) = _ecdsaWallet(1);
        _is(wallet, hash, Proving.ecdsa(key, _personal(wallet, hash)), VALID, "nested");
        _is(wallet, hash, Proving.ecdsa(key, hash), INVALID, "the hash itself");
        _is(wallet, hash, Proving.ecdsa(STRANGER_KEY, _personal(wallet, hash)), INVALID, "a stranger's");
    }

    function testFuzz_typed_data_is_nested_under_the_wallets_domain(bytes32 domain, bytes32 contents) external {
        (Wallet wallet, uint256 key) = _ecdsaWallet(1);
        (bytes32 hash, bytes32 nested) = _typed(wallet, domain, contents);
        _is(wallet, hash, _nested(Proving.ecdsa(key, nested), domain, contents), VALID, "nested");
        _is(wallet, hash, _nested(Proving.ecdsa(key, hash), domain, contents), INVALID, "the hash itself");
        bytes32 other = keccak256(abi.encode(contents));
        _is(wallet, hash, _nested(Proving.ecdsa(key, nested), domain, other), INVALID, "other contents");
    }

    function testFuzz_a_signature_for_one_wallet_is_worthless_for_another_of_the_same_owner(bytes32 hash) external {
        (Wallet one, uint256 key) = _ecdsaWallet(1);
        (Wallet another,) = _ecdsaWallet(1);
        _is(one, hash, Proving.ecdsa(key, _personal(one, hash)), VALID, "for its wallet");
        _is(another, hash, Proving.ecdsa(key, _personal(one, hash)), INVALID, "for another one");
    }

    /// @dev The domain of a wallet that was never rotated, as docs/contracts.md says, on that chain.
    function _domainOn(uint256 chainId, Wallet wallet) private pure returns (bytes memory) {
        return abi.encode(keccak256("castellan"), keccak256("1"), chainId, address(wallet));
    }

    function _personalOn(uint256 chainId, Wallet wallet, bytes32 hash) private pure returns (bytes32) {
        bytes32 typeHash =
            keccak256("EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)");
        return MessageHashUtils.toTypedDataHash(
            keccak256(bytes.concat(typeHash, _domainOn(chainId, wallet))),
            keccak256(abi.encode(keccak256("PersonalSign(bytes prefixed)"), hash))
        );
    }

    function _typedOn(uint256 chainId, Wallet wallet, bytes32 domain, bytes32 contents) private pure returns (bytes32) {
        bytes32 typeHash = keccak256(
            bytes.concat(
                "TypedDataSign(Mail contents,string name,string version,uint256 chainId,",
                "address verifyingContract,bytes32 salt)",
                bytes(CONTENTS)
            )
        );
        bytes memory nested =
            bytes.concat(abi.encode(typeHash, contents), _domainOn(chainId, wallet), bytes32(0));
        return MessageHashUtils.toTypedDataHash(domain, keccak256(nested));
    }

    function testFuzz_a_signature_for_one_chain_is_worthless_on_every_other(uint64 one, uint64 other, bytes32 contents)
        external
    {
        vm.assume(one != other);
        (Wallet wallet, uint256 key) = _ecdsaWallet(1);
        bytes32 domain = keccak256("domain of an application");
        bytes32 hash = MessageHashUtils.toTypedDataHash(domain, contents);
        bytes memory personal = Proving.ecdsa(key, _personalOn(one, wallet, contents));
        bytes memory typed = _nested(Proving.ecdsa(key, _typedOn(one, wallet, domain, contents)), domain, contents);
        vm.chainId(one);
        _is(wallet, contents, personal, VALID, "a personal message on its chain");
        _is(wallet, hash, typed, VALID, "typed data on their chain");
        (,,, uint256 chainId,,,) = wallet.eip712Domain();
        vm.assertEq(chainId, one, "the chain of the domain");
        vm.chainId(other);
        _is(wallet, contents, personal, INVALID, "a personal message on another chain");
        _is(wallet, hash, typed, INVALID, "typed data on another chain");
    }

    function test_the_signature_of_an_operation_is_none_of_its_hash_as_a_message() external {
        (Wallet wallet, uint256 key) = _ecdsaWallet(1);
        for (uint256 i = 0; i < 3; ++i) {
            bytes32 hash = _op(Version(i), wallet, "").hash(Version(i));
            _is(wallet, hash, Proving.ecdsa(key, hash), INVALID, "as it is");
            _is(wallet, hash, _signature(unbound, Proving.ecdsa(key, hash)), INVALID, "with its window");
        }
    }

    function test_the_signature_of_a_message_is_none_of_an_operation_of_its_hash() external {
        (Wallet wallet, uint256 key) = _ecdsaWallet(1);
        Op memory op = _op(Version.V07, wallet, "");
        bytes memory proof = Proving.ecdsa(key, _personal(wallet, op.hash(Version.V07)));
        _is(wallet, op.hash(Version.V07), proof, VALID, "a message");
        _is(wallet, op.hash(Version.V07), Proving.flipped(proof), INVALID, "with s in the high half");
        op.signature = _signature(unbound, proof);
        _refused(Version.V07, op, "AA24 signature error");
    }

    function test_a_multisig_and_a_passkey_sign_messages_too() external {
        bytes32 hash = keccak256("message");
        (Wallet multisig, uint256[] memory keys) = _multisigWallet(1);
        bytes32 nested = _personal(multisig, hash);
        bytes memory two = bytes.concat(Proving.ecdsa(keys[0], nested), Proving.ecdsa(keys[2], nested));
        _is(multisig, hash, two, VALID, "two of three");
        _is(multisig, hash, Proving.ecdsa(keys[1], nested), INVALID, "one of three");
        (Wallet wallet, uint256 key) = _passkeyWallet(1);
        bytes memory proof = Proving.single(Proving.assertion(key, _personal(wallet, hash), 0));
        _is(wallet, hash, proof, VALID, "a passkey");
    }

    function testFuzz_bytes_that_prove_nothing_are_wrong_and_no_revert(bytes32 hash, bytes calldata signature)
        external
    {
        (Wallet ecdsa,) = _ecdsaWallet(1);
        (Wallet passkey,) = _passkeyWallet(1);
        (Wallet multisig,) = _multisigWallet(1);
        vm.assume(signature.length > 0);
        _is(ecdsa, hash, signature, INVALID, "ECDSA");
        _is(passkey, hash, signature, INVALID, "passkey");
        _is(multisig, hash, signature, INVALID, "multisig");
    }

    function test_it_says_that_it_knows_ERC_7739() external {
        (Wallet wallet,) = _ecdsaWallet(1);
        bytes32 asked = 0x7739773977397739773977397739773977397739773977397739773977397739;
        _is(wallet, asked, "", 0x77390001, "ERC-7739's own answer");
    }

    function test_the_former_owner_signs_no_message_any_more() external {
        (Wallet wallet, uint256 key) = _ecdsaWallet(1);
        bytes memory signature = Proving.ecdsa(key, _personal(wallet, keccak256("m")));
        _is(wallet, keccak256("m"), signature, VALID, "before");
        vm.prank(address(wallet));
        wallet.setConfig(Proving.config(1, 1, Proving.owners(70, 1), new uint256[](0)));
        _is(wallet, keccak256("m"), signature, INVALID, "afterwards");
    }

    function test_a_signature_of_an_earlier_configuration_is_worthless_though_its_signer_stays() external {
        (Wallet wallet, uint256 key) = _ecdsaWallet(1);
        bytes memory signature = Proving.ecdsa(key, _personal(wallet, keccak256("m")));
        vm.prank(address(wallet));
        wallet.setConfig(Proving.config(1, 1, Proving.owners(1, 1), new uint256[](0)));
        _is(wallet, keccak256("m"), signature, INVALID, "of the first configuration");
        signature = Proving.ecdsa(key, _personal(wallet, keccak256("m")));
        _is(wallet, keccak256("m"), signature, VALID, "of the second one");
    }
}
