// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Proofs} from "../../../contracts/src/Proofs.sol";
import {Rotation} from "../../../contracts/src/Rotation.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Proving} from "../support/Proving.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract IsSignedByValidatorsTest is WalletTest {
    function testFuzz_a_proof_over_the_hash_itself_is_theirs(bytes32 hash, bytes32 other) external {
        vm.assume(hash != other);
        (Wallet wallet, uint256 key) = _ecdsaWallet(1);
        vm.prank(address(wallet));
        vm.assertTrue(wallet.isSignedByValidators(hash, Proving.ecdsa(key, hash)), "the owner's");
        vm.prank(address(wallet));
        vm.assertTrue(wallet.isSignedByValidators(hash, Proving.personal(key, hash)), "its EIP-191 form");
        vm.prank(address(wallet));
        vm.assertFalse(wallet.isSignedByValidators(hash, Proving.ecdsa(STRANGER_KEY, hash)), "a stranger's");
        vm.prank(address(wallet));
        vm.assertFalse(wallet.isSignedByValidators(other, Proving.ecdsa(key, hash)), "over another hash");
    }

    function testFuzz_bytes_of_no_form_revert(bytes32 hash, bytes calldata proof) external {
        vm.assume(proof.length < 64);
        (Wallet wallet,) = _passkeyWallet(1);
        vm.prank(address(wallet));
        vm.expectRevert(abi.encodeWithSelector(Proofs.Malformed.selector));
        wallet.isSignedByValidators(hash, proof);
    }

    function testFuzz_only_the_wallet_itself_may_call(address caller, bytes32 hash) external {
        (Wallet wallet, uint256 key) = _ecdsaWallet(1);
        vm.assume(caller != address(wallet));
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(Rotation.OnlySelf.selector, caller));
        wallet.isSignedByValidators(hash, Proving.ecdsa(key, hash));
    }
}
