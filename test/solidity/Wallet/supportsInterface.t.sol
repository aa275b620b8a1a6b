// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1271} from "@openzeppelin/contracts/interfaces/IERC1271.sol";
import {IAccount} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {IERC1155Receiver} from "@openzeppelin/contracts/token/ERC1155/IERC1155Receiver.sol";
import {IERC721Receiver} from "@openzeppelin/contracts/token/ERC721/IERC721Receiver.sol";
import {IERC165} from "@openzeppelin/contracts/utils/introspection/IERC165.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract SupportsInterfaceTest is WalletTest {
    bytes4[5] private supported = [
        type(IERC165).interfaceId,
        type(IAccount).interfaceId,
        type(IERC1271).interfaceId,
        type(IERC721Receiver).interfaceId,
        type(IERC1155Receiver).interfaceId
    ];

    function test_what_a_wallet_is() external view {
        for (uint256 i = 0; i < supported.length; ++i) {
            vm.assertTrue(implementation.supportsInterface(supported[i]), "supported");
        }
    }

    function testFuzz_it_is_nothing_else(bytes4 other) external view {
        for (uint256 i = 0; i < supported.length; ++i) vm.assume(other != supported[i]);
        vm.assertFalse(implementation.supportsInterface(other), "not supported");
        vm.assertFalse(implementation.supportsInterface(0xffffffff), "ERC-165 forbids it");
    }
}
