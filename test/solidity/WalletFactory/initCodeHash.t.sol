// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

contract InitCodeHashTest is Suite {
    function test_it_is_of_the_proxys_creation_code_and_its_arguments() external view {
        bytes32 expected = keccak256(bytes.concat(_code("WalletProxy"), abi.encode(beacon, "")));
        vm.assertEq(factory.initCodeHash(), expected, "initCodeHash");
    }
}
