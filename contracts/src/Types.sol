// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice A P-256 public key in affine coordinates.
/// @param x First coordinate, 32 bytes, big-endian.
/// @param y Second one.
struct PublicKey {
    bytes32 x;
    bytes32 y;
}

/// @notice The validators of a wallet. {ConfigRules} has its rules.
/// @param custody 1 ECDSA, 2 ECDSA or passkey, 3 multisig, 4 multisig with passkeys, 5 passkey. Never changes.
/// @param threshold Number of distinct validators that must sign. 1 for custody 1, 2 and 5.
/// @param owners secp256k1 signers, strictly ascending. Exactly one for custody 1 and 2, none for 5.
/// @param passkeys P-256 keys, strictly ascending by (x, y). None for custody 1 and 3.
struct Config {
    uint8 custody;
    uint8 threshold;
    address[] owners;
    PublicKey[] passkeys;
}

/// @notice One call of a batch.
/// @param target The called contract.
/// @param value Wei that go with the call.
/// @param data Calldata.
struct Call {
    address target;
    uint256 value;
    bytes data;
}

/// @notice The unpacked user operation of EntryPoint v0.6 (ERC-4337, version 0.6).
/// @param sender The wallet.
/// @param nonce Key (192 bits, the top 64 name the configuration) and sequence (64).
/// @param initCode Factory (20 bytes) and its calldata when the operation creates the wallet, otherwise empty.
/// @param callData Calldata of the wallet's call; empty: no call.
/// @param callGasLimit Gas of that call.
/// @param verificationGasLimit Gas of creation and validation; with a paymaster that of its functions, each, too.
/// @param preVerificationGas Gas that is paid for what the EntryPoint does not measure.
/// @param maxFeePerGas Most wei for a unit of gas.
/// @param maxPriorityFeePerGas Most wei for a unit of gas above the base fee.
/// @param paymasterAndData Paymaster (20 bytes) and its data, or nothing.
/// @param signature An {OpSignature}.
struct UserOperationV06 {
    address sender;
    uint256 nonce;
    bytes initCode;
    bytes callData;
    uint256 callGasLimit;
    uint256 verificationGasLimit;
    uint256 preVerificationGas;
    uint256 maxFeePerGas;
    uint256 maxPriorityFeePerGas;
    bytes paymasterAndData;
    bytes signature;
}

/// @notice The functions of a wallet that the factory calls.
interface IWallet {
    /// @notice Installs the first configuration and records the signer of the operation that created the wallet.
    /// Callable once, by any address: the factory does so in the transaction that deploys the proxy.
    /// @param config The first configuration; reverts unless it obeys the rules of {ConfigRules}.
    /// @param deployer The signer of the next operation validated in this transaction, if it makes no call.
    function initialize(Config calldata config, address deployer) external;

    /// @notice The configuration in force, and how many have been installed so far.
    /// @return config The configuration, as it was installed; all zero before the first.
    /// @return configNonce Their number: 1 after the creation, one more with every rotation and recovery.
    function configuration() external view returns (Config memory config, uint64 configNonce);
}
