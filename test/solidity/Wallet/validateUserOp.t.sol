// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Account as AccountBase} from "@openzeppelin/contracts/account/Account.sol";
import {PackedUserOperation} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {PasskeyProof, Proofs} from "../../../contracts/src/Proofs.sol";
import {Config, UserOperationV06} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {IEntryPointCommon, Op, Ops, Version} from "../support/Ops.sol";
import {PasskeyCases} from "../support/PasskeyCases.sol";
import {Proving} from "../support/Proving.sol";
import {Terms, WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract ValidateUserOpTest is WalletTest {
    using Ops for Op;

    string private constant WRONG = "AA24 signature error";

    Wallet private wallet;
    uint256 private key;
    uint256[] private none;

    function setUp() public override {
        super.setUp();
        (wallet, key) = _ecdsaWallet(1);
    }

    function _pay(Wallet from) private view returns (bytes memory) {
        return abi.encodeCall(from.execute, (stranger, 1, ""));
    }

    function _payment(Version version) private view returns (Op memory) {
        return _op(version, wallet, _pay(wallet));
    }

    /// @dev Validates as the EntryPoint does, with missing funds to pay.
    function _validate(Version version, Op memory op, bytes32 hash, uint256 missing) private returns (uint256) {
        if (version == Version.V06) {
            UserOperationV06 memory unpacked = op.asV06();
            vm.prank(Ops.ENTRY_POINT_V06, bundler);
            return wallet.validateUserOp(unpacked, hash, missing);
        }
        PackedUserOperation memory packed = op.pack();
        vm.prank(Ops.entryPoint(version), bundler);
        return wallet.validateUserOp(packed, hash, missing);
    }

    // ------------------------------------------------------------------------------------- who may call

    function testFuzz_the_packed_form_is_for_v07_and_v08_alone(address caller) external {
        vm.assume(caller != Ops.ENTRY_POINT_V07 && caller != Ops.ENTRY_POINT_V08);
        PackedUserOperation memory packed = _signed(_payment(Version.V07), Version.V07, key).pack();
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(AccountBase.AccountUnauthorized.selector, caller));
        wallet.validateUserOp(packed, 0, 0);
        vm.prank(Ops.ENTRY_POINT_V06);
        vm.expectRevert(abi.encodeWithSelector(AccountBase.AccountUnauthorized.selector, Ops.ENTRY_POINT_V06));
        wallet.validateUserOp(packed, 0, 0);
    }

    function testFuzz_the_form_of_v06_is_for_v06_alone(address caller) external {
        vm.assume(caller != Ops.ENTRY_POINT_V06);
        UserOperationV06 memory unpacked = _signed(_payment(Version.V06), Version.V06, key).asV06();
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(AccountBase.AccountUnauthorized.selector, caller));
        wallet.validateUserOp(unpacked, 0, 0);
        vm.prank(Ops.ENTRY_POINT_V07);
        vm.expectRevert(abi.encodeWithSelector(AccountBase.AccountUnauthorized.selector, Ops.ENTRY_POINT_V07));
        wallet.validateUserOp(unpacked, 0, 0);
    }

    // ----------------------------------------------------------------------------------- what it returns

    function testFuzz_it_returns_the_window_and_pays_what_is_missing(uint8 which, Terms memory terms, uint64 missing)
        external
    {
        Version version = Version(which % 3);
        terms.bundler = terms.validAfter % 2 == 0 ? bundler : address(0);
        Op memory op = _signed(_payment(version), version, key, terms);
        uint256 before = Ops.entryPoint(version).balance;
        uint256 data = _validate(version, op, op.hash(version), missing);
        vm.assertEq(data, (uint256(terms.validAfter) << 208) | (uint256(terms.validUntil) << 160), "window");
        uint256 paid = missing > FUNDS ? 0 : missing;
        vm.assertEq(Ops.entryPoint(version).balance - before, paid, "paid, or left to the EntryPoint to refuse");
    }

    function testFuzz_a_wrong_key_is_told_together_with_the_window(uint8 which, uint48 until, uint48 from) external {
        Version version = Version(which % 3);
        Op memory op = _signed(_payment(version), version, STRANGER_KEY, Terms(until, from, address(0)));
        uint256 data = _validate(version, op, op.hash(version), 0);
        vm.assertEq(data, (uint256(from) << 208) | (uint256(until) << 160) | 1, "window and failure");
    }

    // ------------------------------------------------------------------------------------------- custodies

    function test_custody_1_is_its_owner_with_either_hash() external {
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            _handle(version, _signed(_payment(version), version, key));
            Op memory op = _payment(version);
            op.signature = _signature(unbound, Proving.personal(key, op.hash(version)));
            _handle(version, op);
            _refused(version, _signed(_payment(version), version, STRANGER_KEY), WRONG);
            op = _payment(version);
            op.signature = _signature(unbound, Proving.flipped(Proving.ecdsa(key, op.hash(version))));
            _refused(version, op, WRONG);
            op.signature = _signature(unbound, bytes.concat(Proving.ecdsa(key, op.hash(version)), new bytes(65)));
            _refused(version, op, WRONG);
        }
    }

    function test_custody_2_is_its_owner_or_any_passkey_and_not_a_wrong_one_beside() external {
        uint256[] memory owners = Proving.owners(5, 1);
        uint256[] memory passkeys = Proving.passkeys(5, 2);
        wallet = _wallet(Proving.config(2, 1, owners, passkeys));
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            _handle(version, _signed(_payment(version), version, owners[0]));
            _handle(version, _signedByPasskey(_payment(version), version, passkeys[1], 1));
            _refused(version, _signedByPasskey(_payment(version), version, passkeys[1], 0), WRONG);
            _refused(version, _signedByPasskey(_payment(version), version, passkeys[1], 2), WRONG);
            Op memory op = _payment(version);
            PasskeyProof[] memory both = new PasskeyProof[](2);
            both[0] = Proving.assertion(passkeys[0], op.hash(version), 0);
            both[1] = Proving.assertion(STRANGER_KEY >> 1, op.hash(version), 1);
            op.signature = _signature(unbound, Proving.mixed(Proving.ecdsa(owners[0], op.hash(version)), both));
            _refused(version, op, WRONG);
            both[1] = Proving.assertion(passkeys[1], op.hash(version), 1);
            op.signature = _signature(unbound, Proving.mixed(Proving.ecdsa(owners[0], op.hash(version)), both));
            _handle(version, op);
        }
    }

    function test_custody_3_is_as_many_owners_as_the_threshold_says() external {
        uint256[] memory keys;
        (wallet, keys) = _multisigWallet(5);
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            uint256[] memory two = new uint256[](2);
            (two[0], two[1]) = (keys[2], keys[0]);
            _handle(version, _signed(_payment(version), version, two, unbound));
            _handle(version, _signed(_payment(version), version, keys, unbound));
            _refused(version, _signed(_payment(version), version, keys[0]), WRONG);
            two[1] = two[0];
            _refused(version, _signed(_payment(version), version, two, unbound), WRONG);
            two[1] = STRANGER_KEY;
            _refused(version, _signed(_payment(version), version, two, unbound), WRONG);
        }
    }

    function test_custody_4_counts_owners_and_passkeys_together() external {
        uint256[] memory owners = Proving.owners(5, 2);
        uint256[] memory passkeys = Proving.passkeys(5, 2);
        wallet = _wallet(Proving.config(4, 2, owners, passkeys));
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            Op memory op = _payment(version);
            bytes32 hash = op.hash(version);
            PasskeyProof[] memory one = new PasskeyProof[](1);
            one[0] = Proving.assertion(passkeys[1], hash, 1);
            op.signature = _signature(unbound, Proving.mixed("", one));
            _refused(version, op, WRONG);
            op.signature = _signature(unbound, Proving.mixed(Proving.ecdsa(owners[0], hash), one));
            _handle(version, op);
            _handle(version, _signed(_payment(version), version, owners, unbound));
            op = _payment(version);
            PasskeyProof[] memory twice = new PasskeyProof[](2);
            twice[0] = twice[1] = Proving.assertion(passkeys[0], op.hash(version), 0);
            op.signature = _signature(unbound, Proving.mixed("", twice));
            _refused(version, op, WRONG);
        }
    }

    function test_custody_5_is_any_passkey() external {
        uint256[] memory passkeys = Proving.passkeys(5, 3);
        wallet = _wallet(Proving.config(5, 1, none, passkeys));
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            for (uint8 k = 0; k < 3; ++k) {
                _handle(version, _signedByPasskey(_payment(version), version, passkeys[k], k));
            }
            _refused(version, _signedByPasskey(_payment(version), version, passkeys[0], 3), WRONG);
            _refused(version, _signedByPasskey(_payment(version), version, STRANGER_KEY >> 1, 0), WRONG);
        }
    }

    // --------------------------------------------------------------------------------------- conditions

    function test_a_window_is_kept() external {
        vm.warp(1_000_000);
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            Terms memory late = Terms(999_999, 0, address(0));
            _refused(version, _signed(_payment(version), version, key, late), "AA22 expired or not due");
            Terms memory early = Terms(0, 1_000_001, address(0));
            _refused(version, _signed(_payment(version), version, key, early), "AA22 expired or not due");
            _handle(version, _signed(_payment(version), version, key, Terms(1_000_001, 999_999, address(0))));
        }
    }

    function testFuzz_a_bound_operation_is_for_its_bundler_alone(address other) external {
        vm.assume(other != bundler && other.code.length == 0 && other != address(0));
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            Op memory op = _signed(_payment(version), version, key, Terms(0, 0, bundler));
            (bool success, bytes memory result) = _submit(version, Ops.only(op), other);
            vm.assertFalse(success, "refused");
            vm.assertEq(result, abi.encodeWithSelector(IEntryPointCommon.FailedOp.selector, 0, WRONG), WRONG);
            _handle(version, op);
        }
    }

    function testFuzz_conditions_that_were_not_signed_are_worthless(uint48 until, uint48 from) external {
        vm.assume(until > block.timestamp + 2 || until == 0);
        from = uint48(from % block.timestamp);
        vm.assume(until != 0 || from != 0);
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            Op memory op = _payment(version);
            bytes memory proof = Proving.ecdsa(key, op.hash(version));
            op.signature = _signature(Terms(until, from, address(0)), proof);
            _refused(version, op, WRONG);
            op.signature = _signature(Terms(0, 0, bundler), proof);
            _refused(version, op, WRONG);
        }
    }

    // ------------------------------------------------------------------------------------------ hostile bytes

    function testFuzz_a_signature_that_is_too_short_reverts(bytes calldata signature) external {
        vm.assume(signature.length < 128);
        for (uint256 i = 0; i < 3; ++i) {
            Op memory op = _payment(Version(i));
            op.signature = signature;
            _reverted(Version(i), op, "AA23 reverted", abi.encodeWithSelector(Proofs.Malformed.selector));
        }
    }

    function test_words_beyond_their_types_never_pass() external {
        uint256[5][6] memory bad = [
            [uint256(1 << 48), 0, 0, 128, 0],
            [uint256(0), 1 << 48, 0, 128, 0],
            [uint256(0), 0, 1 << 160, 128, 0],
            [uint256(0), 0, 0, 1 << 64, 0],
            [uint256(0), 0, 0, 1 << 255, 0],
            [uint256(0), 0, 0, 128, 1 << 64]
        ];
        for (uint256 i = 0; i < 18; ++i) {
            Op memory op = _payment(Version(i / 6));
            op.signature = abi.encode(bad[i % 6]);
            _refusedSomehow(Version(i / 6), op);
        }
    }

    function test_the_implementation_validates_nothing() external {
        wallet = implementation;
        for (uint256 i = 0; i < 3; ++i) {
            Op memory op = _op(Version.V07, implementation, "");
            op.nonce = uint256(type(uint64).max - 1) << 192;
            bytes32 hash = op.hash(Version.V07);
            op.signature = _signature(unbound, Proving.ecdsa(key, hash));
            vm.assertEq(_validate(Version(i), op, hash, 0), 1, "failure");
        }
    }

    function testFuzz_hostile_bytes_never_pass(uint8 which, uint8 custody, bytes calldata junk) external {
        Version version = Version(which % 3);
        if (custody % 3 == 1) (wallet,) = _multisigWallet(1);
        if (custody % 3 == 2) (wallet,) = _passkeyWallet(1);
        Op memory op = _payment(version);
        op.signature = bytes.concat(new bytes(96), abi.encode(128), junk);
        (bool success,) = _submit(version, Ops.only(op), bundler);
        vm.assertFalse(success, "with a proof of junk");
        op.signature = junk;
        (success,) = _submit(version, Ops.only(op), bundler);
        vm.assertFalse(success, "junk");
    }

    function testFuzz_one_flipped_bit_of_a_signature_is_worthless(uint8 which, uint256 bit) external {
        Version version = Version(which % 3);
        Op memory op = _signed(_payment(version), version, key, Terms(0, 0, bundler));
        // The words of offset and length, and the padding, are not signed: the same proof is found in other places.
        uint256[3] memory starts = [uint256(26), 58, 160];
        uint256[3] memory lengths = [uint256(6), 6, 65];
        uint256 part = bit % 3;
        uint256 index = starts[part] + (bit / 3) % lengths[part];
        op.signature[index] ^= bytes1(uint8(1 << ((bit >> 128) % 8)));
        _refusedSomehow(version, op);
    }

    function _refusedSomehow(Version version, Op memory op) private {
        (bool success,) = _submit(version, Ops.only(op), bundler);
        vm.assertFalse(success, "refused");
    }

    // ----------------------------------------------------------------------------------------- the deployer

    function test_the_deployer_signs_the_creation_and_nothing_after_it() external {
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            bytes32 saltHash = keccak256(abi.encode("created on", i));
            Config memory config = Proving.config(1, 1, Proving.owners(30 + i, 1), none);
            Op memory op = _creationOp(version, saltHash, config);
            vm.deal(op.sender, 1 ether);
            bytes memory authorized = op.signature;
            _refused(version, _signed(op, version, Proving.owners(30 + i, 1)[0]), WRONG);
            op.signature = authorized;
            _handle(version, op);
            wallet = Wallet(payable(op.sender));
            _refused(version, _signed(_op(version, wallet, ""), version, DEPLOYER_KEY), WRONG);
            _refused(version, _signed(_payment(version), version, DEPLOYER_KEY), WRONG);
            _handle(version, _signed(_payment(version), version, Proving.owners(30 + i, 1)[0]));
        }
    }

    function test_the_deployer_does_not_sign_a_creation_that_calls() external {
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            bytes32 saltHash = keccak256(abi.encode("calls on", i));
            Config memory config = Proving.config(1, 1, Proving.owners(30, 1), none);
            Op memory op = _creationOp(version, saltHash, config);
            vm.deal(op.sender, 1 ether);
            op.callData = _pay(wallet);
            _refused(version, _signed(op, version, DEPLOYER_KEY), WRONG);
            _handle(version, _signed(op, version, Proving.owners(30, 1)[0]));
        }
    }

    function test_two_operations_of_one_creating_bundle_are_not_both_the_deployers() external {
        for (uint256 i = 0; i < 3; ++i) {
            Version version = Version(i);
            bytes32 saltHash = keccak256(abi.encode("twice on", i));
            Op[] memory ops = new Op[](2);
            ops[0] = _creationOp(version, saltHash, Proving.config(1, 1, Proving.owners(30, 1), none));
            vm.deal(ops[0].sender, 1 ether);
            ops[1] = _op(version, Wallet(payable(ops[0].sender)), "");
            ops[1].nonce = 1;
            ops[1] = _signed(ops[1], version, DEPLOYER_KEY);
            (bool success, bytes memory result) = _submit(version, ops, bundler);
            vm.assertFalse(success, "refused");
            vm.assertEq(result, abi.encodeWithSelector(IEntryPointCommon.FailedOp.selector, 1, WRONG), WRONG);
        }
    }

    // ------------------------------------------------------------------------------------- configurations

    function test_a_signature_of_an_earlier_configuration_is_worthless_in_the_next_one() external {
        uint256[] memory keys;
        (wallet, keys) = _multisigWallet(5);
        Config memory lower = Proving.config(3, 1, keys, none);
        Op[3] memory stale;
        for (uint256 i = 0; i < 3; ++i) stale[i] = _signed(_payment(Version(i)), Version(i), keys[0]);
        vm.prank(address(wallet));
        wallet.setConfig(lower);
        for (uint256 i = 0; i < 3; ++i) {
            _refused(Version(i), stale[i], WRONG);
            _handle(Version(i), _signed(_payment(Version(i)), Version(i), keys[0]));
        }
    }

    function testFuzz_a_nonce_that_names_another_configuration_is_refused(uint64 epoch) external {
        vm.assume(epoch != 0);
        for (uint256 i = 0; i < 3; ++i) {
            Op memory op = _payment(Version(i));
            op.nonce = uint256(epoch) << 192;
            _refused(Version(i), _signed(op, Version(i), key), WRONG);
        }
    }

    function test_a_passkey_of_an_earlier_configuration_is_of_no_index_though_its_key_is_still_stored() external {
        uint256[] memory three = Proving.passkeys(5, 3);
        uint256[] memory owners = Proving.owners(5, 2);
        for (uint8 custody = 2; custody < 6; ++custody) {
            if (custody == 3) continue;
            uint256[] memory signers = new uint256[](custody == 5 ? 0 : custody == 4 ? 2 : 1);
            for (uint256 i = 0; i < signers.length; ++i) signers[i] = owners[i];
            wallet = _wallet(Proving.config(custody, 1, signers, three));
            uint256[] memory first = new uint256[](1);
            first[0] = three[0];
            vm.prank(address(wallet));
            wallet.setConfig(Proving.config(custody, 1, signers, first));
            for (uint256 i = 0; i < 3; ++i) {
                for (uint8 index = 1; index < 3; ++index) {
                    _refused(Version(i), _signedByPasskey(_payment(Version(i)), Version(i), three[index], index), WRONG);
                }
                _handle(Version(i), _signedByPasskey(_payment(Version(i)), Version(i), three[0], 0));
            }
        }
    }
}

/// @notice The wallet's own verification of one assertion, in operations of each EntryPoint and in messages.
contract ValidateUserOpByPasskeyTest is PasskeyCases {
    using Ops for Op;

    Wallet private wallet;

    function setUp() public override {
        super.setUp();
        wallet = _wallet(_twoPasskeys());
    }

    function _verdicts(PasskeyProof memory by) internal override returns (bool[] memory verdicts) {
        verdicts = new bool[](4);
        Op memory op = _op(Version.V07, wallet, "");
        op.signature = _signature(unbound, Proving.single(by));
        (UserOperationV06 memory unpacked, PackedUserOperation memory packed) = (op.asV06(), op.pack());
        vm.prank(Ops.ENTRY_POINT_V06, bundler);
        verdicts[0] = wallet.validateUserOp(unpacked, HASH, 0) == 0;
        vm.prank(Ops.ENTRY_POINT_V07, bundler);
        verdicts[1] = wallet.validateUserOp(packed, HASH, 0) == 0;
        vm.prank(Ops.ENTRY_POINT_V08, bundler);
        verdicts[2] = wallet.validateUserOp(packed, HASH, 0) == 0;
        vm.prank(address(wallet));
        verdicts[3] = wallet.isSignedByValidators(HASH, Proving.single(by));
    }
}
