// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

contract GetAddressTest is Suite {
    function _create2(bytes32 salt) private view returns (address) {
        bytes32 initCodeHash = keccak256(bytes.concat(_code("WalletProxy"), abi.encode(beacon, "")));
        return address(
            uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(factory), salt, initCodeHash))))
        );
    }

    function testFuzz_it_is_the_CREATE2_address_of_salt_and_custody(bytes32 saltHash, uint256 custody) external view {
        address expected = _create2(keccak256(abi.encode(saltHash, custody)));
        vm.assertEq(factory.getAddress(saltHash, custody, false), expected, "address");
    }

    function testFuzz_of_a_legacy_wallet_it_is_that_of_the_salt_alone(bytes32 saltHash, uint256 custody) external view {
        vm.assertEq(factory.getAddress(saltHash, custody, true), _create2(saltHash), "address");
    }
}
