// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {EntryPointProxy} from "./EntryPointProxy.sol";
import {Frames} from "./Frames.sol";
import {Chain, WalletState} from "./LensTypes.sol";

/// @dev Views of the EntryPoint's own code, identical in v0.6, v0.7 and v0.8.
interface IEntryPointViews {
    function balanceOf(address account) external view returns (uint256);
    function getNonce(address sender, uint192 key) external view returns (uint256);
}

/// @title Reads the chain and wallets without warming them
abstract contract StateReader is EntryPointProxy {
    /// @notice The state of the chain, a beacon and wallets. Only for the lens itself; always reverts, with the answer.
    function look(address[] calldata wallets, uint192[] calldata keys, address beacon) external internalOnly {
        Chain memory chain;
        chain.chainId = block.chainid;
        chain.number = block.number;
        chain.timestamp = block.timestamp;
        chain.baseFee = block.basefee;
        chain.gasLimit = block.gaslimit;
        if (beacon != address(0)) {
            chain.implementation = _implementation(beacon);
            if (chain.implementation != address(0)) chain.implementationHash = chain.implementation.codehash;
        }
        WalletState[] memory states = new WalletState[](wallets.length);
        IEntryPointViews entryPoint = IEntryPointViews(address(this));
        for (uint256 i = 0; i < wallets.length; i++) {
            address wallet = wallets[i];
            states[i].deposit = entryPoint.balanceOf(wallet);
            states[i].balance = wallet.balance;
            states[i].codeHash = wallet.codehash;
            states[i].sequences = new uint64[](keys.length);
            for (uint256 k = 0; k < keys.length; k++) {
                states[i].sequences[k] = uint64(entryPoint.getNonce(wallet, keys[k]));
            }
        }
        Frames.revertWith(abi.encode(chain, states));
    }

    /// @notice A balance. Only for the lens itself; always reverts, with the answer.
    function lookAtBalance(address account) external internalOnly {
        Frames.revertWith(abi.encode(account.balance));
    }

    /// @dev A beacon's answer, or zero; a beacon cannot make this fail.
    function _implementation(address beacon) private view returns (address implementation) {
        // implementation()
        bytes4 selector = 0x5c60da1b;
        assembly ("memory-safe") {
            mstore(0, selector)
            if and(eq(returndatasize(), 32), staticcall(100000, beacon, 0, 4, 0, 32)) {
                implementation := and(mload(0), 0xffffffffffffffffffffffffffffffffffffffff)
            }
        }
    }
}
