// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

/// @notice The cheatcodes of forge that these tests use.
interface Vm {
    struct Wallet {
        address addr;
        uint256 publicKeyX;
        uint256 publicKeyY;
        uint256 privateKey;
    }

    struct Log {
        bytes32[] topics;
        bytes data;
        address emitter;
    }

    function addr(uint256 privateKey) external pure returns (address);
    function sign(uint256 privateKey, bytes32 digest) external pure returns (uint8 v, bytes32 r, bytes32 s);
    function signP256(uint256 privateKey, bytes32 digest) external pure returns (bytes32 r, bytes32 s);
    function publicKeyP256(uint256 privateKey) external pure returns (uint256 x, uint256 y);

    function prank(address sender) external;
    function prank(address sender, address origin) external;
    function deal(address account, uint256 balance) external;
    function etch(address account, bytes calldata code) external;
    function warp(uint256 timestamp) external;
    function setNonce(address account, uint64 nonce) external;
    function chainId(uint256 id) external;
    function fee(uint256 baseFee) external;
    function load(address account, bytes32 slot) external view returns (bytes32);
    function store(address account, bytes32 slot, bytes32 value) external;
    function mockCallRevert(address callee, bytes calldata data, bytes calldata revertData) external;
    function clearMockedCalls() external;
    function snapshotState() external returns (uint256 id);
    function revertToState(uint256 id) external returns (bool);
    function label(address account, string calldata name) external;

    function expectRevert() external;
    function expectRevert(bytes calldata data) external;
    function expectEmit() external;
    function expectEmit(address emitter) external;
    function recordLogs() external;
    function getRecordedLogs() external returns (Log[] memory);

    function getCode(string calldata artifact) external view returns (bytes memory);
    function envOr(string calldata name, string calldata fallbackValue) external view returns (string memory);
    function toString(uint256 value) external pure returns (string memory);

    function assume(bool condition) external pure;
    function assertTrue(bool condition, string calldata what) external pure;
    function assertFalse(bool condition, string calldata what) external pure;
    function assertEq(bool a, bool b, string calldata what) external pure;
    function assertEq(uint256 a, uint256 b, string calldata what) external pure;
    function assertEq(address a, address b, string calldata what) external pure;
    function assertEq(bytes32 a, bytes32 b, string calldata what) external pure;
    function assertEq(bytes calldata a, bytes calldata b, string calldata what) external pure;
    function assertEq(string calldata a, string calldata b, string calldata what) external pure;
    function assertLe(uint256 a, uint256 b, string calldata what) external pure;
}

Vm constant vm = Vm(address(uint160(uint256(keccak256("hevm cheat code")))));
