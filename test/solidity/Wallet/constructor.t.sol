// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Config} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Configs} from "../support/Configs.sol";
import {Ops, Version} from "../support/Ops.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract ConstructorTest is WalletTest {
    function testFuzz_the_arguments_are_the_EntryPoints_and_the_validator(address[4] memory given, address other)
        external
    {
        bytes memory arguments = abi.encode(given[0], given[1], given[2], given[3]);
        Wallet made = Wallet(payable(_create("Wallet", arguments)));
        bool among;
        for (uint256 i = 0; i < 3; ++i) {
            vm.assertTrue(made.isEntryPoint(given[i]), "an EntryPoint");
            among = among || given[i] == other;
        }
        vm.assertEq(made.isEntryPoint(other), among, "nothing else");
        vm.assertEq(made.validator(), given[3], "validator");
        vm.assertEq(address(made.entryPoint()), given[1], "the second one is v0.7");
    }

    function test_a_wallet_has_those_of_its_implementation() external {
        (Wallet wallet,) = _ecdsaWallet(1);
        for (uint256 i = 0; i < 3; ++i) vm.assertTrue(wallet.isEntryPoint(Ops.entryPoint(Version(i))), "EntryPoint");
        vm.assertEq(address(wallet.entryPoint()), Ops.ENTRY_POINT_V07, "v0.7");
        vm.assertEq(wallet.validator(), address(validator), "validator");
    }

    function test_the_implementation_belongs_to_nobody() external {
        Wallet made = Wallet(payable(_create("Wallet", abi.encode(1, 2, 3, 4))));
        Config memory config = Configs.valid(1, 1);
        vm.expectRevert(abi.encodeWithSelector(Wallet.AlreadyInitialized.selector));
        made.initialize(config, stranger);
    }
}
