// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {PackedUserOperation} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {UserOperationV06} from "../../../contracts/src/Types.sol";

/// @notice The EntryPoint versions that the suite accepts.
enum Version {
    V06,
    V07,
    V08
}

/// @notice An operation, unpacked, of any version. Gas limits of the paymaster are part of `paymasterAndData`.
struct Op {
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

interface IEntryPointV06 {
    function handleOps(UserOperationV06[] calldata ops, address payable beneficiary) external;
    function getUserOpHash(UserOperationV06 calldata op) external view returns (bytes32);
}

interface IEntryPointPacked {
    function handleOps(PackedUserOperation[] calldata ops, address payable beneficiary) external;
    function getUserOpHash(PackedUserOperation calldata op) external view returns (bytes32);
}

/// @notice The common interface of all three EntryPoints.
interface IEntryPointCommon {
    struct DepositInfo {
        uint112 deposit;
        bool staked;
        uint112 stake;
        uint32 unstakeDelaySec;
        uint48 withdrawTime;
    }

    event UserOperationEvent(
        bytes32 indexed userOpHash,
        address indexed sender,
        address indexed paymaster,
        uint256 nonce,
        bool success,
        uint256 actualGasCost,
        uint256 actualGasUsed
    );

    error FailedOp(uint256 opIndex, string reason);
    error FailedOpWithRevert(uint256 opIndex, string reason, bytes inner);

    function balanceOf(address account) external view returns (uint256);
    function depositTo(address account) external payable;
    function getNonce(address sender, uint192 key) external view returns (uint256);
    function getDepositInfo(address account) external view returns (DepositInfo memory);
}

/// @notice Operations in the shape of a version, and what the EntryPoint does with them.
library Ops {
    address internal constant ENTRY_POINT_V06 = 0x5FF137D4b0FDCD49DcA30c7CF57E578a026d2789;
    address internal constant ENTRY_POINT_V07 = 0x0000000071727De22E5E9d8BAf0edAc6f37da032;
    address internal constant ENTRY_POINT_V08 = 0x4337084D9E255Ff0702461CF8895CE9E3b5Ff108;

    function entryPoint(Version version) internal pure returns (address) {
        return version == Version.V06 ? ENTRY_POINT_V06 : version == Version.V07 ? ENTRY_POINT_V07 : ENTRY_POINT_V08;
    }

    /// @notice The contract that the EntryPoint's constructor created: it calls factories.
    function senderCreator(Version version) internal pure returns (address) {
        return address(uint160(uint256(keccak256(abi.encodePacked(hex"d694", entryPoint(version), hex"01")))));
    }

    function asV06(Op memory op) internal pure returns (UserOperationV06 memory) {
        return UserOperationV06(
            op.sender,
            op.nonce,
            op.initCode,
            op.callData,
            op.callGasLimit,
            op.verificationGasLimit,
            op.preVerificationGas,
            op.maxFeePerGas,
            op.maxPriorityFeePerGas,
            op.paymasterAndData,
            op.signature
        );
    }

    function pack(Op memory op) internal pure returns (PackedUserOperation memory) {
        return PackedUserOperation(
            op.sender,
            op.nonce,
            op.initCode,
            op.callData,
            bytes32((op.verificationGasLimit << 128) | op.callGasLimit),
            op.preVerificationGas,
            bytes32((op.maxPriorityFeePerGas << 128) | op.maxFeePerGas),
            op.paymasterAndData,
            op.signature
        );
    }

    /// @notice userOpHash, as the EntryPoint itself computes it.
    function hash(Op memory op, Version version) internal view returns (bytes32) {
        return version == Version.V06
            ? IEntryPointV06(ENTRY_POINT_V06).getUserOpHash(asV06(op))
            : IEntryPointPacked(entryPoint(version)).getUserOpHash(pack(op));
    }

    /// @notice Calldata of `handleOps`.
    function bundle(Op[] memory ops, Version version, address beneficiary) internal pure returns (bytes memory) {
        if (version == Version.V06) {
            UserOperationV06[] memory unpacked = new UserOperationV06[](ops.length);
            for (uint256 i = 0; i < ops.length; ++i) unpacked[i] = asV06(ops[i]);
            return abi.encodeCall(IEntryPointV06.handleOps, (unpacked, payable(beneficiary)));
        }
        PackedUserOperation[] memory packed = new PackedUserOperation[](ops.length);
        for (uint256 i = 0; i < ops.length; ++i) packed[i] = pack(ops[i]);
        return abi.encodeCall(IEntryPointPacked.handleOps, (packed, payable(beneficiary)));
    }

    /// @notice A list of one.
    function only(Op memory op) internal pure returns (Op[] memory ops) {
        ops = new Op[](1);
        ops[0] = op;
    }
}
