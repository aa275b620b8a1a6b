// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice A wallet that accepts every signature and performs scripted acts in its validation and in its call.
contract Hostile {
    /// @dev Kinds: 0 no act, 1 burn all gas, 2 revert with `size` bytes, 3 return `size` bytes, 4 call `target` with
    /// `data` and continue, 5 pay no prefund.
    struct Act {
        uint8 kind;
        uint256 size;
        address target;
        bytes data;
    }

    Act private _whenValidating;

    function prepare(Act calldata act) external {
        _whenValidating = act;
    }

    /// @return ok whether the call of kind 4 succeeded
    /// @return returned return data of the call of kind 4
    function perform(Act calldata act) external returns (bool ok, bytes memory returned) {
        return _perform(act);
    }

    receive() external payable {}

    /// @dev validateUserOp of any version: the third word is missingAccountFunds.
    fallback() external payable {
        _perform(_whenValidating);
        uint256 missing;
        assembly {
            missing := calldataload(68)
        }
        if (_whenValidating.kind != 5 && missing != 0) payable(msg.sender).call{value: missing}("");
        assembly {
            mstore(0, 0)
            return(0, 32)
        }
    }

    function _perform(Act memory act) private returns (bool ok, bytes memory returned) {
        if (act.kind == 1) {
            while (true) {}
        }
        uint256 size = act.size;
        if (act.kind == 2) {
            assembly {
                revert(0, size)
            }
        }
        if (act.kind == 3) {
            assembly {
                return(0, size)
            }
        }
        if (act.kind == 4) (ok, returned) = act.target.call(act.data);
    }
}

/// @notice Code for EntryPoint.delegateAndRevert: acts as the EntryPoint.
contract Puppet {
    function go(address target, bytes calldata data) external returns (bool ok, bytes memory returned) {
        return target.call(data);
    }
}
