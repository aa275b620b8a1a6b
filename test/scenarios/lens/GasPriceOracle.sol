// SPDX-License-Identifier: MIT
pragma solidity ^0.8.28;

/// @notice What OP-stack's predeploy of this name answers, by the rules of the Ecotone release: calldata gas of the
/// transaction and of the signature that it may still lack, at a price of layer 1.
contract GasPriceOracle {
    /// @notice Wei per unit of calldata gas.
    uint256 public price;

    function setPrice(uint256 wei_) external {
        price = wei_;
    }

    function getL1Fee(bytes calldata transaction) external view returns (uint256) {
        uint256 gas = 68 * 16;
        for (uint256 i = 0; i < transaction.length; i++) gas += transaction[i] == 0 ? 4 : 16;
        return gas * price;
    }

    /// @notice Wei per million units of gas, and per transaction; the fee since the Isthmus release.
    uint256 public operatorScalar;
    uint256 public operatorConstant;

    function setOperator(uint256 scalar, uint256 constant_) external {
        operatorScalar = scalar;
        operatorConstant = constant_;
    }

    function getOperatorFee(uint256 gasUsed) external view returns (uint256) {
        return (gasUsed * operatorScalar) / 1e6 + operatorConstant;
    }
}
