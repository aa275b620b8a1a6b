// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

contract Eip712DomainTest is Suite {
    function testFuzz_it_is_of_this_contract_on_this_chain(uint64 chainId) external {
        vm.assume(chainId > 0);
        vm.chainId(chainId);
        (bytes1 fields, string memory name, string memory version, uint256 id, address verifier, bytes32 salt,) =
            factory.eip712Domain();
        vm.assertEq(bytes32(fields), bytes32(bytes1(0x0f)), "fields");
        vm.assertEq(name, "castellan", "name");
        vm.assertEq(version, "1", "version");
        vm.assertEq(id, chainId, "chain");
        vm.assertEq(verifier, address(factory), "verifying contract");
        vm.assertEq(salt, 0, "salt");
    }
}
