// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Config} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Configs} from "../support/Configs.sol";
import {ConfigRulesTest} from "../support/ConfigRulesTest.sol";
import {Op, Ops, Version} from "../support/Ops.sol";
import {Proving} from "../support/Proving.sol";
import {vm} from "../support/Vm.sol";

contract InitializeTest is ConfigRulesTest {
    using Ops for Op;

    uint256[] private none;

    function _installs(Config memory config) internal override {
        _proxy().initialize(config, deployer);
    }

    /// @dev A proxy that no factory has initialised.
    function _proxy() private returns (Wallet) {
        return Wallet(payable(_create("WalletProxy", abi.encode(beacon, ""))));
    }

    function testFuzz_whatever_obeys_the_rules_is_installed_as_it_is(uint8 custody, uint256 seed) external {
        Config memory config = Configs.valid(1 + custody % 5, seed);
        Wallet wallet = _proxy();
        wallet.initialize(config, deployer);
        (Config memory installed, uint64 configNonce) = wallet.configuration();
        vm.assertEq(abi.encode(installed), abi.encode(config), "configuration");
        vm.assertEq(configNonce, 1, "configNonce");
    }

    function test_a_wallet_is_initialised_once() external {
        (Wallet wallet,) = _ecdsaWallet(1);
        Config memory another = Configs.valid(1, 2);
        vm.expectRevert(abi.encodeWithSelector(Wallet.AlreadyInitialized.selector));
        wallet.initialize(another, stranger);
        vm.prank(address(factory));
        vm.expectRevert(abi.encodeWithSelector(Wallet.AlreadyInitialized.selector));
        wallet.initialize(another, stranger);
        vm.prank(address(wallet));
        vm.expectRevert(abi.encodeWithSelector(Wallet.AlreadyInitialized.selector));
        wallet.initialize(another, stranger);
    }

    function test_the_implementation_is_never_initialised() external {
        vm.expectRevert(abi.encodeWithSelector(Wallet.AlreadyInitialized.selector));
        implementation.initialize(Configs.valid(1, 1), stranger);
    }

    function test_the_deployer_may_sign_nothing_once_the_transaction_is_over() external {
        Wallet wallet = _proxy();
        wallet.initialize(Configs.valid(1, 1), deployer);
        vm.deal(address(wallet), 1 ether);
        for (uint256 i = 0; i < 3; ++i) {
            _refused(
                Version(i),
                _signed(_op(Version(i), wallet, ""), Version(i), DEPLOYER_KEY),
                "AA24 signature error"
            );
        }
    }

    function testFuzz_an_EOA_that_delegates_its_code_is_refused(uint256 key, address caller) external {
        key = 1 + key % (Proving.N_SECP256K1 - 1);
        address eoa = vm.addr(key);
        address[2] memory delegates = [address(implementation), address(_proxy())];
        Config memory config = Configs.valid(1, 1);
        for (uint256 i = 0; i < 2; ++i) {
            vm.etch(eoa, abi.encodePacked(hex"ef0100", delegates[i]));
            vm.prank(caller);
            vm.expectRevert(abi.encodeWithSelector(Wallet.DelegatedAccount.selector));
            Wallet(payable(eoa)).initialize(config, deployer);
            vm.prank(eoa);
            vm.expectRevert(abi.encodeWithSelector(Wallet.DelegatedAccount.selector));
            Wallet(payable(eoa)).initialize(config, deployer);
        }
    }
}
