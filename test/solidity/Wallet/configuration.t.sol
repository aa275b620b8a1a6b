// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Config} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Configs} from "../support/Configs.sol";
import {Proving} from "../support/Proving.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract ConfigurationTest is WalletTest {
    function testFuzz_it_is_what_was_installed_last_whatever_was_there(uint8 custody, uint256[4] memory seeds)
        external
    {
        custody = 1 + custody % 5;
        Wallet wallet = _wallet(Configs.valid(custody, seeds[0]));
        for (uint256 i = 1; i < 4; ++i) {
            Config memory config = Configs.valid(custody, seeds[i]);
            vm.prank(address(wallet));
            wallet.setConfig(config);
            (Config memory installed, uint64 configNonce) = wallet.configuration();
            vm.assertEq(abi.encode(installed), abi.encode(config), "configuration");
            vm.assertEq(configNonce, i + 1, "configNonce");
        }
    }

    function test_sixteen_owners_and_sixteen_passkeys_are_the_most() external {
        Config memory config = Proving.config(4, 32, Proving.owners(1, 16), Proving.passkeys(1, 16));
        (Config memory installed,) = _wallet(config).configuration();
        vm.assertEq(abi.encode(installed), abi.encode(config), "configuration");
    }

    function test_a_proxy_that_nobody_has_initialised_has_none() external {
        Wallet wallet = Wallet(payable(_create("WalletProxy", abi.encode(beacon, ""))));
        (Config memory config, uint64 configNonce) = wallet.configuration();
        vm.assertEq(abi.encode(config), abi.encode(Config(0, 0, new address[](0), config.passkeys)), "configuration");
        vm.assertEq(config.passkeys.length, 0, "passkeys");
        vm.assertEq(configNonce, 0, "configNonce");
    }

    function test_the_implementation_has_none_and_can_have_none() external view {
        (Config memory config, uint64 configNonce) = implementation.configuration();
        vm.assertEq(config.custody, 0, "custody");
        vm.assertEq(configNonce, type(uint64).max, "configNonce");
    }
}
