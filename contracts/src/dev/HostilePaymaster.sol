// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {PackedUserOperation} from "@openzeppelin/contracts/interfaces/IERC4337.sol";
import {UserOperationV06} from "../Types.sol";

/// @title A paymaster that does its worst, for development chains and tests
/// @notice Each instance misbehaves in one way, whatever its data.
contract HostilePaymaster {
    /// @notice Vices in validation: none, revert with a reason, burn all gas, return much, return little, refuse the
    /// signature, sponsor an expired window, return a huge context. In postOp: revert, burn all gas. Last, sponsor each
    /// wallet only once.
    enum Vice {
        None,
        Revert,
        BurnGas,
        ReturnMuch,
        ReturnLittle,
        RefuseSignature,
        Expired,
        HugeContext,
        RevertInPostOp,
        BurnGasInPostOp,
        OnlyOnce
    }

    /// @notice A custom error, as paymasters have.
    error NotToday(address wallet);

    Vice private immutable VICE;

    mapping(address wallet => bool) private _seen;

    /// @param vice the vice of this instance
    constructor(Vice vice) {
        VICE = vice;
    }

    /// @notice For operations of v0.7 and v0.8.
    function validatePaymasterUserOp(PackedUserOperation calldata userOp, bytes32, uint256)
        external
        returns (bytes memory, uint256)
    {
        return _validate(userOp.sender);
    }

    /// @notice For operations of v0.6.
    function validatePaymasterUserOp(UserOperationV06 calldata userOp, bytes32, uint256)
        external
        returns (bytes memory, uint256)
    {
        return _validate(userOp.sender);
    }

    function _validate(address wallet) private returns (bytes memory context, uint256 validationData) {
        Vice vice = VICE;
        if (vice == Vice.Revert) revert NotToday(wallet);
        if (vice == Vice.BurnGas) _burn();
        if (vice == Vice.ReturnMuch) {
            assembly {
                return(0, 60000)
            }
        }
        if (vice == Vice.ReturnLittle) {
            assembly {
                return(0, 31)
            }
        }
        if (vice == Vice.RefuseSignature) return (context, 1);
        if (vice == Vice.Expired) return (context, uint256(1) << 160);
        if (vice == Vice.HugeContext) return (new bytes(20_000), 0);
        if (vice == Vice.OnlyOnce) {
            if (_seen[wallet]) revert NotToday(wallet);
            _seen[wallet] = true;
        }
        return (vice == Vice.None ? context : abi.encode(vice), 0);
    }

    /// @notice For operations of v0.7 and v0.8.
    function postOp(uint8, bytes calldata context, uint256, uint256) external view {
        _after(abi.decode(context, (Vice)));
    }

    /// @notice For operations of v0.6.
    function postOp(uint8, bytes calldata context, uint256) external view {
        _after(abi.decode(context, (Vice)));
    }

    function _after(Vice vice) private view {
        if (vice == Vice.RevertInPostOp) revert NotToday(tx.origin);
        if (vice == Vice.BurnGasInPostOp) _burn();
    }

    function _burn() private view {
        while (gasleft() > 200) {}
        assembly {
            invalid()
        }
    }
}
