// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Conditions} from "../Conditions.sol";
import {ConfigStorage} from "../ConfigStorage.sol";
import {OpSignature, Proofs} from "../Proofs.sol";
import {Wallet} from "../Wallet.sol";

/// @title A wallet whose operations are verified by an aggregator, for development chains and tests
/// @notice Otherwise a {Wallet}, so a beacon can point to it instead. The operation that creates it names no aggregator;
/// every later operation does, and is refused outside its group in `handleAggregatedOps`.
contract AggregatedWallet is Wallet {
    using ConfigStorage for ConfigStorage.Layout;

    /// @notice Verifies the proofs.
    address public immutable aggregator;

    /// @param aggregator_ aggregator that every operation names; the other parameters are {Wallet}'s
    constructor(
        address entryPointV06,
        address entryPointV07,
        address entryPointV08,
        address custodyValidator,
        address aggregator_
    ) Wallet(entryPointV06, entryPointV07, entryPointV08, custodyValidator) {
        aggregator = aggregator_;
    }

    /// @notice Whether `proof` is by enough of this wallet's validators over `hash`.
    function isProof(bytes32 hash, bytes calldata proof) external view returns (bool) {
        return _isByValidators(ConfigStorage.get().head(), hash, proof);
    }

    /// @dev The signature is the same blob with an empty proof, which the aggregator has verified already.
    function _validate(bytes calldata signature, bytes32 userOpHash, uint256 nonce, bool callsNothing)
        internal
        override
        returns (uint256)
    {
        if (callsNothing) return super._validate(signature, userOpHash, nonce, callsNothing);
        if (!_isOfConfiguration(ConfigStorage.get().head(), nonce)) return Conditions.FAILED;
        OpSignature calldata signed = Proofs.decodeSignature(signature);
        if (signed.bundler != address(0) && signed.bundler != tx.origin) return Conditions.FAILED;
        return Conditions.window(signed.validUntil, signed.validAfter) | uint160(aggregator);
    }
}
