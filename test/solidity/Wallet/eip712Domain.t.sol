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
        (bytes1 fields, string memory name, string memory version, uint256 id, address verifier, bytes32 salt,) =
            wallet.eip712Domain();
        vm.assertEq(bytes32(fields), bytes32(bytes1(0x0f)), "fields");
        vm.assertEq(name, "castellan", "name");
        vm.assertEq(version, "1", "version");
        vm.assertEq(id, chainId, "chain");
        vm.assertEq(verifier, address(wallet), "verifying contract");
        vm.assertEq(salt, 0, "salt");
    }

    function test_its_version_names_the_configuration() external {
        (Wallet wallet,) = _ecdsaWallet(1);
        string[3] memory versions = ["1.1", "1.2", "1.3"];
        for (uint256 i = 0; i < 3; ++i) {
            vm.prank(address(wallet));
            wallet.setConfig(Configs.valid(1, i));
            (,, string memory version,,,,) = wallet.eip712Domain();
            vm.assertEq(version, versions[i], "version");
        }
    }
}
