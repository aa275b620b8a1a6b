// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Base64} from "@openzeppelin/contracts/utils/Base64.sol";
import {PasskeyProof} from "../../../contracts/src/Proofs.sol";
import {Config} from "../../../contracts/src/Types.sol";
import {Proving} from "./Proving.sol";
import {WalletTest} from "./WalletTest.sol";
import {vm} from "./Vm.sol";

/// @notice Valid and invalid assertions, for every verifier: a wallet's own code verifies a single passkey, the
/// validator all others.
abstract contract PasskeyCases is WalletTest {
    bytes32 internal constant HASH = keccak256("signed");

    /// @notice Whether a proof by this assertion alone is good under {_twoPasskeys}, in each of the ways to ask.
    function _verdicts(PasskeyProof memory by) internal virtual returns (bool[] memory);

    /// @notice The configuration: custody 5 with the first two passkeys.
    function _twoPasskeys() internal pure returns (Config memory) {
        return Proving.config(5, 1, new uint256[](0), Proving.passkeys(1, 2));
    }

    function _assertionIs(PasskeyProof memory by, bool expected, string memory what) private {
        bool[] memory verdicts = _verdicts(by);
        vm.assertTrue(verdicts.length > 0, "asked");
        for (uint256 i = 0; i < verdicts.length; ++i) vm.assertEq(verdicts[i], expected, what);
    }

    function test_an_assertion_is_of_its_key_over_the_hash() external {
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

    function testFuzz_user_presence_and_verification_are_demanded(bytes1 flags) external {
        uint256 key = Proving.passkeys(1, 2)[0];
        bool demanded = flags & 0x05 == 0x05;
        bool backedUpAndNotEligible = flags & 0x18 == 0x10;
        PasskeyProof memory by = Proving.assertion(key, HASH, 0, flags, "webauthn.get");
        _assertionIs(by, demanded && !backedUpAndNotEligible, "flags");
    }

    function test_a_registration_is_no_assertion() external {
        uint256 key = Proving.passkeys(1, 2)[0];
        _assertionIs(Proving.assertion(key, HASH, 0, 0x05, "webauthn.create"), false, "type");
        _assertionIs(Proving.assertion(key, HASH, 0, 0x05, "payment.get"), false, "type");
    }

    function testFuzz_indexes_that_point_elsewhere_are_wrong(uint256 typeIndex, uint256 challengeIndex) external {
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

    function test_authenticator_data_has_37_bytes_at_least() external {
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

    function _jsonIs(string memory json, bool expected) private {
        uint256 key = Proving.passkeys(1, 2)[0];
        PasskeyProof memory by =
            Proving.signed(key, 0, 0x05, json, _indexOf(json, _type()), _indexOf(json, _challenge()));
        _assertionIs(by, expected, json);
    }

    function test_type_and_challenge_are_members_of_the_object_in_any_order_and_among_any_others() external {
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

    function test_in_the_order_of_the_specification_a_comma_is_between_them() external {
        string[6] memory others = [":", ";", " ", "{", "\"", "\\"];
        for (uint256 i = 0; i < others.length; ++i) {
            _jsonIs(string.concat("{", _type(), others[i], _challenge(), "}"), false);
        }
        string[4] memory begins = ["[", " ", "\"", "}"];
        for (uint256 i = 0; i < begins.length; ++i) {
            _jsonIs(string.concat(begins[i], _type(), ",", _challenge(), "}"), false);
        }
        _jsonIs(string.concat("{", _type(), ",", _challenge(), "}"), true);
    }

    function test_a_value_that_is_no_JSON_changes_nothing_about_who_is_a_member() external {
        string memory turned = string.concat(_challenge(), ",", _type());
        _jsonIs(string.concat('{"a":yes_Y,', turned, "}"), true);
        _jsonIs(string.concat('{"a":{yes_Y,', turned, "}}"), false);
    }

    function test_type_or_challenge_inside_of_another_value_are_none() external {
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
        return "one hundred bytes without quote or backslash, so that whole words of thirty-two bytes are skipped in bulk";
    }
}
