// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Configs} from "../support/Configs.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract Eip712DomainTest is WalletTest {
    function testFuzz_it_is_of_this_wallet_on_this_chain(uint64 chainId) external {
        vm.assume(chainId > 0);
        (Wallet wallet,) = _ecdsaWallet(1);
        vm.chainId(chainId);
        _hasDomain(address(wallet), "1", chainId);
    }

    function test_its_version_names_the_configuration() external {
        (Wallet wallet,) = _ecdsaWallet(1);
        string[3] memory versions = ["1.1", "1.2", "1.3"];
        for (uint256 i = 0; i < 3; ++i) {
            vm.prank(address(wallet));
            wallet.setConfig(Configs.valid(1, i));
            _hasDomain(address(wallet), versions[i], block.chainid);
        }
    }
}
