// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Configs} from "../support/Configs.sol";
import {Op, Ops, Version} from "../support/Ops.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract GetNonceTest is WalletTest {
    Wallet private wallet;
    uint256 private key;

    function setUp() public override {
        super.setUp();
        (wallet, key) = _ecdsaWallet(1);
    }

    function testFuzz_it_is_the_one_that_EntryPoint_v07_takes_next(uint128 lane) external {
        vm.assertEq(wallet.getNonce(lane), _nonce(Version.V07, wallet, lane), "before");
        Op memory op = _op(Version.V07, wallet, "");
        op.nonce = wallet.getNonce(lane);
        _handle(Version.V07, _signed(op, Version.V07, key));
        vm.assertEq(wallet.getNonce(lane), op.nonce + 1, "afterwards");
    }

    function test_without_a_parameter_it_is_that_of_key_zero() external {
        vm.assertEq(wallet.getNonce(), wallet.getNonce(0), "before");
        Op memory op = _op(Version.V07, wallet, "");
        _handle(Version.V07, _signed(op, Version.V07, key));
        vm.assertEq(wallet.getNonce(), op.nonce + 1, "afterwards");
    }

    function test_it_names_the_configuration_in_force_whatever_is_in_its_place() external {
        vm.prank(address(wallet));
        wallet.setConfig(Configs.valid(1, 2));
        vm.assertEq(wallet.getNonce(), 1 << 192, "of key zero");
        vm.assertEq(wallet.getNonce((9 << 128) | 5), (1 << 192) | (5 << 64), "of another key");
    }

    function test_the_other_EntryPoints_count_by_themselves() external {
        uint256 before = wallet.getNonce();
        _handle(Version.V08, _signed(_op(Version.V08, wallet, ""), Version.V08, key));
        vm.assertEq(wallet.getNonce(), before, "nonce");
    }
}
