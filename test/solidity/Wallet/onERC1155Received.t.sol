// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC1155Receiver} from "@openzeppelin/contracts/token/ERC1155/IERC1155Receiver.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract OnERC1155ReceivedTest is WalletTest {
    function testFuzz_every_token_is_taken(address operator, address from, uint256 id, uint256 n, bytes calldata data)
        external
    {
        (Wallet wallet,) = _ecdsaWallet(1);
        bytes4 answer = wallet.onERC1155Received(operator, from, id, n, data);
        vm.assertEq(bytes32(answer), bytes32(IERC1155Receiver.onERC1155Received.selector), "its own selector");
    }
}
