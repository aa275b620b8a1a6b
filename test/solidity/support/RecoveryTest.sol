// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Config} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {vm} from "./Vm.sol";
import {WalletTest} from "./WalletTest.sol";

/// @notice A wallet with a recovery address and a delay of three days.
abstract contract RecoveryTest is WalletTest {
    uint48 internal constant DELAY = 72 hours;

    Wallet internal wallet;
    uint256 internal key;
    address internal immutable notary = vm.addr(uint256(keccak256("notary")));

    function setUp() public virtual override {
        super.setUp();
        (wallet, key) = _ecdsaWallet(1);
        vm.prank(address(wallet));
        wallet.setRecovery(notary, DELAY);
    }

    function _start(Config memory config) internal {
        vm.prank(notary);
        wallet.startRecovery(config);
    }

    function _pending() internal view returns (bytes32 configHash, uint48 readyAt) {
        (,, configHash, readyAt) = wallet.recoveryState();
    }
}
