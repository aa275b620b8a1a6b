// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {PasskeyProof, Proofs} from "../../../contracts/src/Proofs.sol";
import {Config} from "../../../contracts/src/Types.sol";
import {PasskeyCases} from "../support/PasskeyCases.sol";
import {Proving} from "../support/Proving.sol";
import {vm} from "../support/Vm.sol";

contract VerifyTest is PasskeyCases {
    uint256[] private none;

    function _verdicts(PasskeyProof memory by) internal view override returns (bool[] memory verdicts) {
        verdicts = new bool[](1);
        verdicts[0] = validator.verify(_twoPasskeys(), HASH, Proving.single(by));
    }

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

    function test_sixteen_passkeys_count_one_by_one() external view {
        uint256[] memory keys = Proving.passkeys(1, 16);
        Config memory config = Proving.config(4, 16, Proving.owners(1, 1), keys);
        _is(config, _proof(none, keys, 0xffff << 128), true, "sixteen of them");
        _is(config, _proof(none, keys, 0x7fff << 128), false, "fifteen");
    }

    function testFuzz_a_proof_with_another_word_or_cut_is_none(uint256 at, bytes32 word) external view {
        Config memory config = Proving.config(4, 3, Proving.owners(1, 2), Proving.passkeys(1, 1));
        bytes memory proof = _proof(Proving.owners(1, 2), Proving.passkeys(1, 1), 3 | (1 << 128));
        _is(config, proof, true, "as it is");
        // Not the padding at its end.
        uint256 size = proof.length - 32;
        uint256 offset = 32 * (at % (size / 32));
        bytes32 former;
        assembly ("memory-safe") {
            former := mload(add(add(proof, 32), offset))
            mstore(add(add(proof, 32), offset), word)
        }
        if (former != word && word >> 8 != former >> 8) _isNone(config, proof);
        assembly ("memory-safe") {
            mstore(add(add(proof, 32), offset), former)
            mstore(proof, mod(at, size))
        }
        _isNone(config, proof);
    }

    function _isNone(Config memory config, bytes memory proof) private view {
        try validator.verify(config, HASH, proof) returns (bool valid) {
            vm.assertFalse(valid, "proof");
        } catch {}
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
        _isNone(Proving.config(4, 1, Proving.owners(1, 2), Proving.passkeys(1, 2)), proof);
    }
}
