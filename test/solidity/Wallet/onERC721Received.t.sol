// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {IERC721Receiver} from "@openzeppelin/contracts/token/ERC721/IERC721Receiver.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract OnERC721ReceivedTest is WalletTest {
    function testFuzz_every_token_is_taken(address operator, address from, uint256 id, bytes calldata data) external {
        (Wallet wallet,) = _ecdsaWallet(1);
        bytes4 answer = wallet.onERC721Received(operator, from, id, data);
        vm.assertEq(bytes32(answer), bytes32(IERC721Receiver.onERC721Received.selector), "its own selector");
    }
}
