// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice One ERC-4337 op to measure.
/// @param sender the wallet
/// @param nonce the whole EntryPoint nonce: key << 64 | sequence
/// @param initCode factory ++ calldata, or empty for a deployed wallet
/// @param validateCall calldata of this EntryPoint version's `validateUserOp`; its third word, missingAccountFunds, is written here
/// @param callData calldata of the EntryPoint's call to the wallet; empty for no call
/// @param requiredPrefund wei that the EntryPoint would demand of the wallet, or of the paymaster
/// @param verificationGas gas for creation and validation together; on v0.6 for the paymaster's validation too, which
/// has what they leave, and as much once more for its postOp
/// @param callGas gas for the call
/// @param paymaster the paymaster, or zero: the wallet pays
/// @param paymasterGas gas for the paymaster's validation; without meaning on v0.6
/// @param postOpGas gas for its postOp; without meaning on v0.6
/// @param feePerGas wei per gas unit; postOp gets the op's cost at this price
struct Probe {
    address sender;
    uint256 nonce;
    bytes initCode;
    bytes validateCall;
    bytes callData;
    uint256 requiredPrefund;
    uint256 verificationGas;
    uint256 callGas;
    address paymaster;
    uint256 paymasterGas;
    uint256 postOpGas;
    uint256 feePerGas;
}

/// @notice Stage at which an op stopped: none; its creation failed; its validation failed; its wallet did not pay; its call
/// reverted; too little gas was left to try; its paymaster's validation failed; or the paymaster's postOp reverted.
enum Stage {
    Done,
    Creation,
    Validation,
    Prefund,
    Call,
    Starved,
    Paymaster,
    PostOp
}

/// @notice Result of one op.
/// @param stage where it stopped
/// @param nonceAccepted whether the EntryPoint would accept the nonce after the earlier probes
/// @param coldValidation whether creation and validation were also measured with no storage warmed by other ops
/// @param coldCall likewise for the call
/// @param creationGas gas of the call to the SenderCreator
/// @param validationGas gas of the call to `validateUserOp`
/// @param bookkeepingGas gas of the EntryPoint's own reads and writes: the wallet's deposit and nonce
/// @param callGas gas of the call with `callData`
/// @param paymasterGas gas of the call to `validatePaymasterUserOp`, and of charging the paymaster's deposit
/// @param postOpGas gas of the call to `postOp`; 0 when the paymaster asked for none
/// @param callLimit least gas found with which the call behaves as granted; the limit itself where limits are declared
/// @param paymasterLimit likewise for the paymaster's validation, including the charge to its deposit
/// @param postOpLimit likewise for `postOp`
/// @param validationData what `validateUserOp` returned
/// @param paymasterData validation data that `validatePaymasterUserOp` returned
/// @param shortfall wei that deposit and balance together, or a paymaster's deposit, lack of `requiredPrefund`
/// @param data return data of the call when done, otherwise the revert data; both cut to a bound
struct Measure {
    Stage stage;
    bool nonceAccepted;
    bool coldValidation;
    bool coldCall;
    uint256 creationGas;
    uint256 validationGas;
    uint256 bookkeepingGas;
    uint256 callGas;
    uint256 paymasterGas;
    uint256 postOpGas;
    uint256 callLimit;
    uint256 paymasterLimit;
    uint256 postOpLimit;
    uint256 validationData;
    uint256 paymasterData;
    uint256 shortfall;
    bytes data;
}

/// @notice A wallet before the probes.
/// @param deposit wei at the EntryPoint
/// @param balance the account's own wei
/// @param codeHash EXTCODEHASH
/// @param sequences next sequence of each nonce key asked for
struct WalletState {
    uint256 deposit;
    uint256 balance;
    bytes32 codeHash;
    uint64[] sequences;
}

/// @notice The chain as the call sees it.
/// @param chainId EIP-155 chain id
/// @param number block number
/// @param timestamp block timestamp, Unix seconds
/// @param baseFee base fee, wei; nodes may report 0 in a call without a gas price
/// @param gasLimit block gas limit
/// @param implementation the beacon's implementation; zero without a beacon or without its answer
/// @param implementationHash EXTCODEHASH of the implementation
struct Chain {
    uint256 chainId;
    uint256 number;
    uint256 timestamp;
    uint256 baseFee;
    uint256 gasLimit;
    address implementation;
    bytes32 implementationHash;
}
