// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice A P-256 public key in affine coordinates.
struct PublicKey {
    bytes32 x;
    bytes32 y;
}

/// @notice Who may act for a wallet. The rules it obeys are those of {ConfigRules}.
/// @param custody 1 ECDSA, 2 ECDSA or passkey, 3 multisig, 4 multisig with passkeys, 5 passkey. Never changes.
/// @param threshold How many distinct validators have to sign. 1 for custody 1, 2 and 5.
/// @param owners secp256k1 signers, strictly ascending. Exactly one for custody 1 and 2, none for 5.
/// @param passkeys P-256 keys, strictly ascending by (x, y). None for custody 1 and 3.
struct Config {
    uint8 custody;
    uint8 threshold;
    address[] owners;
    PublicKey[] passkeys;
}

/// @notice One call of a batch.
struct Call {
    address target;
    uint256 value;
    bytes data;
}

/// @notice The unpacked user operation of EntryPoint v0.6 (ERC-4337, version 0.6).
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

/// @notice What the factory needs of a wallet.
interface IWallet {
    /// @notice Installs the first configuration and notes who may sign the operation that created the wallet.
    function initialize(Config calldata config, address deployer) external;

    /// @notice The configuration in force, and how many have been installed so far.
    function configuration() external view returns (Config memory config, uint64 configNonce);
}
