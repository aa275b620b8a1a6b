// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1155Receiver} from "@openzeppelin/contracts/token/ERC1155/IERC1155Receiver.sol";
import {IERC721Receiver} from "@openzeppelin/contracts/token/ERC721/IERC721Receiver.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract TokensTest is WalletTest {
    function testFuzz_every_token_is_taken(address from, uint256[] calldata ids, bytes calldata data) external {
        (Wallet wallet,) = _ecdsaWallet(1);
        uint256 id = ids.length;
        bytes4 one = wallet.onERC721Received(from, from, id, data);
        vm.assertEq(bytes32(one), bytes32(IERC721Receiver.onERC721Received.selector), "ERC-721");
        bytes4 some = wallet.onERC1155Received(from, from, id, id, data);
        vm.assertEq(bytes32(some), bytes32(IERC1155Receiver.onERC1155Received.selector), "ERC-1155");
        bytes4 many = wallet.onERC1155BatchReceived(from, from, ids, ids, data);
        vm.assertEq(bytes32(many), bytes32(IERC1155Receiver.onERC1155BatchReceived.selector), "ERC-1155, many");
    }
}
