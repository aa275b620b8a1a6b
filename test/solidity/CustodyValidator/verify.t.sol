// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {PasskeyProof, Proofs} from "../../../contracts/src/Proofs.sol";
import {Config} from "../../../contracts/src/Types.sol";
import {Base64} from "@openzeppelin/contracts/utils/Base64.sol";
import {Proving} from "../support/Proving.sol";
import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

contract VerifyTest is Suite {
    bytes32 private constant HASH = keccak256("signed");

    uint256[] private none;

    function _is(Config memory config, bytes memory proof, bool expected, string memory what) private view {
        vm.assertEq(validator.verify(config, HASH, proof), expected, what);
    }

    function _proof(uint256[] memory owners, uint256[] memory passkeys, uint256 who) private pure returns (bytes memory) {
        bytes memory parts;
        uint256 count;
        for (uint256 i = 0; i < owners.length; ++i) {
            if (who & (1 << i) != 0) parts = bytes.concat(parts, Proving.ecdsa(owners[i], HASH));
        }
        for (uint256 i = 0; i < passkeys.length; ++i) {
            if (who & (1 << (128 + i)) != 0) ++count;
        }
        PasskeyProof[] memory assertions = new PasskeyProof[](count);
        count = 0;
        for (uint256 i = 0; i < passkeys.length; ++i) {
            if (who & (1 << (128 + i)) != 0) assertions[count++] = Proving.assertion(passkeys[i], HASH, uint8(i));
        }
        return Proving.mixed(parts, assertions);
    }

    function _ones(uint256 who) private pure returns (uint256 count) {
        for (; who != 0; who &= who - 1) ++count;
    }

    function testFuzz_any_set_of_distinct_validators_that_meets_the_threshold_suffices(uint256 seed, uint256 who)
        external
        view
    {
        uint256[] memory owners = Proving.owners(1, 1 + seed % 5);
        uint256[] memory passkeys = Proving.passkeys(1, (seed >> 8) % 4);
        uint8 threshold = uint8(1 + (seed >> 16) % (owners.length + passkeys.length));
        who &= ((1 << owners.length) - 1) | (((1 << passkeys.length) - 1) << 128);
        Config memory config = Proving.config(4, threshold, owners, passkeys);
        _is(config, _proof(owners, passkeys, who), _ones(who) >= threshold, "distinct signers against the threshold");
    }

    function testFuzz_the_order_of_parts_is_free_and_a_repeated_part_makes_all_worthless(uint256 seed) external view {
        uint256[] memory keys = Proving.owners(1, 4);
        Config memory config = Proving.config(3, 3, keys, none);
        bytes[4] memory parts;
        for (uint256 i = 0; i < 4; ++i) {
            parts[i] = seed >> (8 + i) & 1 == 0 ? Proving.ecdsa(keys[i], HASH) : Proving.personal(keys[i], HASH);
        }
        uint256 a = seed % 4;
        uint256 b = (a + 1 + (seed >> 2) % 3) % 4;
        uint256 c = 6 - a - b;
        c = c == a || c == b || c > 3 ? _other(a, b) : c;
        _is(config, bytes.concat(parts[c], parts[a], parts[b]), true, "three distinct ones");
        _is(config, bytes.concat(parts[c], parts[a], parts[b], parts[a]), false, "one of them twice");
        bytes memory again = seed >> (8 + a) & 1 == 0 ? Proving.personal(keys[a], HASH) : Proving.ecdsa(keys[a], HASH);
        _is(config, bytes.concat(parts[a], again, parts[b]), false, "one of them with both hashes");
    }

    function _other(uint256 a, uint256 b) private pure returns (uint256 c) {
        while (c == a || c == b) ++c;
    }

    function test_a_stranger_beside_enough_validators_makes_the_proof_worthless() external view {
        uint256[] memory keys = Proving.owners(1, 3);
        Config memory config = Proving.config(3, 2, keys, none);
        bytes memory two = bytes.concat(Proving.ecdsa(keys[0], HASH), Proving.ecdsa(keys[1], HASH));
        _is(config, two, true, "two of three");
        _is(config, bytes.concat(two, Proving.ecdsa(STRANGER_KEY, HASH)), false, "and a stranger");
        _is(config, bytes.concat(two, new bytes(65)), false, "and zeros");
        _is(config, Proving.mixed(two, new PasskeyProof[](0)), true, "in the other form");
        _is(config, Proving.mixed(bytes.concat(two, hex"00"), new PasskeyProof[](0)), false, "and one byte");
    }

    function test_sixteen_parts_are_the_most_of_the_first_form() external view {
        uint256[] memory keys = Proving.owners(1, 16);
        Config memory config = Proving.config(3, 16, keys, none);
        bytes memory parts = Proving.ecdsa(keys, HASH);
        _is(config, parts, true, "sixteen of sixteen");
        _is(config, Proving.mixed(parts, new PasskeyProof[](0)), true, "in the other form");
        _is(config, Proving.mixed(bytes.concat(parts, Proving.ecdsa(keys[0], HASH)), new PasskeyProof[](0)), false, "17");
    }

    function test_a_configuration_that_was_never_installed_is_met_by_nobody() external view {
        Config memory config = Proving.config(3, 0, Proving.owners(1, 1), none);
        _is(config, Proving.mixed("", new PasskeyProof[](0)), false, "threshold zero");
        _is(config, Proving.ecdsa(Proving.owners(1, 1)[0], HASH), false, "threshold zero and its owner");
    }

    function test_a_part_that_recovers_nobody_is_not_by_the_zero_address() external view {
        Config memory config = Proving.config(3, 1, Proving.owners(1, 1), none);
        config.owners[0] = address(0);
        _is(config, new bytes(65), false, "zeros");
    }

    function testFuzz_more_validators_than_a_wallet_can_have_prove_nothing(uint8 more) external view {
        uint256 count = 17 + uint256(more);
        Config memory config = Proving.config(3, 2, Proving.owners(1, 1), none);
        uint256 key = Proving.owners(1, 1)[0];
        config.owners = new address[](count);
        config.owners[count - 1] = vm.addr(key);
        bytes memory part = Proving.ecdsa(key, HASH);
        _is(config, bytes.concat(part, part), false, "the last of many owners, twice");
        config.threshold = 1;
        _is(config, part, false, "the last of many owners");
        config = Proving.config(5, 1, none, Proving.passkeys(1, 17));
        _is(config, Proving.single(Proving.assertion(Proving.passkeys(1, 17)[16], HASH, 16)), false, "17 passkeys");
    }

    function testFuzz_bytes_of_no_form_revert(bytes calldata proof) external {
        vm.assume(proof.length < 64);
        Config memory config = Proving.config(3, 1, Proving.owners(1, 1), none);
        vm.expectRevert(abi.encodeWithSelector(Proofs.Malformed.selector));
        validator.verify(config, HASH, proof);
    }

    function testFuzz_hostile_bytes_prove_nothing(bytes calldata proof) external view {
        Config memory config = Proving.config(4, 1, Proving.owners(1, 2), Proving.passkeys(1, 2));
        try validator.verify(config, HASH, proof) returns (bool valid) {
            vm.assertFalse(valid, "proof");
        } catch {}
    }

    // ---------------------------------------------------------------------------------------- passkeys

    function _assertionIs(PasskeyProof memory by, bool expected, string memory what) private view {
        _is(Proving.config(5, 1, none, Proving.passkeys(1, 2)), Proving.single(by), expected, what);
    }

    function test_an_assertion_is_of_its_key_over_the_hash() external view {
        uint256[] memory keys = Proving.passkeys(1, 2);
        _assertionIs(Proving.assertion(keys[0], HASH, 0), true, "first");
        _assertionIs(Proving.assertion(keys[1], HASH, 1), true, "second");
        _assertionIs(Proving.assertion(keys[1], HASH, 0), false, "of another index");
        _assertionIs(Proving.assertion(keys[0], HASH, 2), false, "of no index");
        _assertionIs(Proving.assertion(keys[0], keccak256("another"), 0), false, "over another hash");
        PasskeyProof memory high = Proving.assertion(keys[0], HASH, 0);
        high.auth.s = bytes32(Proving.N_P256 - uint256(high.auth.s));
        _assertionIs(high, false, "s in the high half");
    }

    function testFuzz_user_presence_and_verification_are_demanded(bytes1 flags) external view {
        uint256 key = Proving.passkeys(1, 2)[0];
        bool demanded = flags & 0x05 == 0x05;
        bool backedUpAndNotEligible = flags & 0x18 == 0x10;
        PasskeyProof memory by = Proving.assertion(key, HASH, 0, flags, "webauthn.get");
        _assertionIs(by, demanded && !backedUpAndNotEligible, "flags");
    }

    function test_a_registration_is_no_assertion() external view {
        uint256 key = Proving.passkeys(1, 2)[0];
        _assertionIs(Proving.assertion(key, HASH, 0, 0x05, "webauthn.create"), false, "type");
        _assertionIs(Proving.assertion(key, HASH, 0, 0x05, "payment.get"), false, "type");
    }

    function testFuzz_indexes_that_point_elsewhere_are_wrong(uint256 typeIndex, uint256 challengeIndex) external view {
        PasskeyProof memory by = Proving.assertion(Proving.passkeys(1, 2)[0], HASH, 0);
        if (typeIndex != 1) {
            by.auth.typeIndex = typeIndex;
            _assertionIs(by, false, "typeIndex");
        }
        by.auth.typeIndex = 1;
        vm.assume(challengeIndex != 23);
        by.auth.challengeIndex = challengeIndex;
        _assertionIs(by, false, "challengeIndex");
    }

    function test_authenticator_data_has_37_bytes_at_least() external view {
        uint256 key = Proving.passkeys(1, 2)[0];
        PasskeyProof memory by = Proving.assertion(key, HASH, 0);
        bytes memory short = new bytes(36);
        for (uint256 i = 0; i < 36; ++i) short[i] = by.auth.authenticatorData[i];
        by.auth.authenticatorData = short;
        (bytes32 r, bytes32 s) =
            vm.signP256(key, sha256(abi.encodePacked(short, sha256(bytes(by.auth.clientDataJSON)))));
        by.auth.r = r;
        by.auth.s = uint256(s) > Proving.N_P256 / 2 ? bytes32(Proving.N_P256 - uint256(s)) : s;
        _assertionIs(by, false, "authenticatorData");
    }

    // ----------------------------------------------------------------------------------------- client data

    function _quoted(string memory name, string memory value) private pure returns (string memory) {
        return string.concat('"', name, '":"', value, '"');
    }

    function _challenge() private pure returns (string memory) {
        return _quoted("challenge", Base64.encodeURL(abi.encodePacked(HASH)));
    }

    function _type() private pure returns (string memory) {
        return _quoted("type", "webauthn.get");
    }

    function _indexOf(string memory text, string memory part) private pure returns (uint256 index) {
        bytes32 wanted = keccak256(bytes(part));
        uint256 length = bytes(part).length;
        for (;; ++index) {
            bytes32 found;
            assembly ("memory-safe") {
                found := keccak256(add(add(text, 32), index), length)
            }
            if (found == wanted) return index;
        }
    }

    function _jsonIs(string memory json, bool expected) private view {
        uint256 key = Proving.passkeys(1, 2)[0];
        PasskeyProof memory by =
            Proving.signed(key, 0, 0x05, json, _indexOf(json, _type()), _indexOf(json, _challenge()));
        _assertionIs(by, expected, json);
    }

    function test_type_and_challenge_are_members_of_the_object_in_any_order_and_among_any_others() external view {
        string memory both = string.concat(_type(), ",", _challenge());
        string memory turned = string.concat(_challenge(), ",", _type());
        _jsonIs(string.concat("{", both, "}"), true);
        _jsonIs(string.concat("{", turned, "}"), true);
        _jsonIs(string.concat("{ ", both, "}"), true);
        _jsonIs(string.concat(" \t\r\n{", both, "}"), true);
        _jsonIs(string.concat('{"other":{"a":[1,{"b":2}]},', both, "}"), true);
        _jsonIs(string.concat('{"other":[[]],', turned, "}"), true);
        _jsonIs(string.concat('{"text":"a quote \\" and a brace } in it",', both, "}"), true);
        _jsonIs(string.concat('{"long":"', _long(), '",', both, "}"), true);
        _jsonIs(string.concat('{"long":"', _long(), '\\\\",', turned, "}"), true);
        _jsonIs(string.concat("{", _type(), ',"n":1,', _challenge(), "}"), true);
    }

    function test_a_value_that_is_no_JSON_changes_nothing_about_who_is_a_member() external view {
        string memory turned = string.concat(_challenge(), ",", _type());
        _jsonIs(string.concat('{"a":yes_Y,', turned, "}"), true);
        _jsonIs(string.concat('{"a":{yes_Y,', turned, "}}"), false);
    }

    function test_type_or_challenge_inside_of_another_value_are_none() external view {
        string memory both = string.concat(_type(), ",", _challenge());
        string memory creation = _quoted("type", "webauthn.create");
        _jsonIs(string.concat("{", creation, ',"a":{', both, "}}"), false);
        _jsonIs(string.concat("{", creation, ",", _challenge(), ',"a":{', _type(), "}}"), false);
        _jsonIs(string.concat("{", _type(), ',"a":{', _challenge(), "}}"), false);
        _jsonIs(string.concat('{"a":[{', both, "}]}"), false);
        _jsonIs(string.concat("[", both, "]"), false);
        _jsonIs(string.concat("[{", both, "}]"), false);
        _jsonIs(both, false);
        _jsonIs(string.concat("{}", both), false);
        _jsonIs(string.concat("]{", both, "}"), false);
        _jsonIs(string.concat("{]", both, "}"), false);
        _jsonIs(string.concat("x{", both, "}"), false);
        _jsonIs(string.concat("y{", both, "}"), false);
        _jsonIs(string.concat('{"a":"\\', both, "}"), false);
        _jsonIs(string.concat("{", creation, '}{', both, "}"), false);
    }

    function _long() private pure returns (string memory) {
        return "one hundred bytes without quote or backslash, so that whole words of thirty-two bytes are skipped at once";
    }
}
