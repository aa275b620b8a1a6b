// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {CustodyValidator} from "../../../contracts/src/CustodyValidator.sol";
import {OperationLedger} from "../../../contracts/src/OperationLedger.sol";
import {SponsorPaymaster} from "../../../contracts/src/SponsorPaymaster.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {WalletBeacon} from "../../../contracts/src/WalletBeacon.sol";
import {WalletFactory} from "../../../contracts/src/WalletFactory.sol";
import {IERC5267} from "@openzeppelin/contracts/interfaces/IERC5267.sol";
import {IEntryPointCommon, Ops, Version} from "./Ops.sol";
import {vm} from "./Vm.sol";

/// @notice The suite on its EntryPoints, as it is deployed: the code is that of contracts/artifacts.
/// @dev `CASTELLAN_CODE_<contract>` names another artifact: one with a planted fault, or the source, for coverage.
abstract contract Suite {
    uint256 internal constant DEPLOYER_KEY = uint256(keccak256("deployer"));
    uint256 internal constant SPONSOR_KEY = uint256(keccak256("sponsor"));
    uint256 internal constant STRANGER_KEY = uint256(keccak256("stranger"));

    address internal immutable deployer = vm.addr(DEPLOYER_KEY);
    address internal immutable sponsor = vm.addr(SPONSOR_KEY);
    address internal immutable stranger = vm.addr(STRANGER_KEY);
    address internal immutable bundler = vm.addr(uint256(keccak256("bundler")));
    address internal immutable beaconOwner = vm.addr(uint256(keccak256("beacon owner")));
    address internal immutable owner = vm.addr(uint256(keccak256("owner")));

    address private constant CREATE2_DEPLOYER = 0x4e59b44847b379578588920cA78FbF26c0B4956C;

    CustodyValidator internal validator;
    OperationLedger internal ledger;
    Wallet internal implementation;
    WalletBeacon internal beacon;
    WalletFactory internal factory;
    SponsorPaymaster internal paymaster;

    function setUp() public virtual {
        _entryPoint(Version.V06, 0);
        _entryPoint(Version.V07, 0x90d8084deab30c2a37c45e8d47f49f2f7965183cb6990a98943ef94940681de3);
        _entryPoint(Version.V08, 0x0a59dbff790c23c976a548690c27297883cc66b4c67024f9117b0238995e35e9);
        validator = CustodyValidator(_create("CustodyValidator", ""));
        ledger = OperationLedger(_create("OperationLedger", ""));
        implementation = Wallet(payable(_create("Wallet", bytes.concat(_entryPoints(), abi.encode(validator)))));
        beacon = WalletBeacon(_create("WalletBeacon", abi.encode(implementation, beaconOwner)));
        factory =
            WalletFactory(_create("WalletFactory", bytes.concat(abi.encode(beacon, deployer, owner), _entryPoints())));
        paymaster =
            SponsorPaymaster(_create("SponsorPaymaster", bytes.concat(abi.encode(sponsor, owner), _entryPoints())));
        for (uint256 i = 0; i < 3; ++i) {
            vm.deal(address(this), 10 ether);
            IEntryPointCommon(Ops.entryPoint(Version(i))).depositTo{value: 10 ether}(address(paymaster));
        }
    }

    function _entryPoints() internal pure returns (bytes memory) {
        return abi.encode(Ops.ENTRY_POINT_V06, Ops.ENTRY_POINT_V07, Ops.ENTRY_POINT_V08);
    }

    /// @dev The canonical one, by the transaction that puts it on every chain.
    function _entryPoint(Version version, bytes32 salt) private {
        string memory name = string.concat("contracts-v0.", vm.toString(6 + uint256(version)));
        bytes memory code =
            vm.getCode(string.concat("node_modules/@account-abstraction/", name, "/artifacts/EntryPoint.json"));
        (bool success, bytes memory deployed) = CREATE2_DEPLOYER.call(bytes.concat(salt, code));
        vm.assertTrue(success, "the EntryPoint is deployed");
        vm.assertEq(address(bytes20(deployed)), Ops.entryPoint(version), "at its canonical address");
    }

    /// @notice Requires that the contract's domain of EIP-712 is its own, on this chain.
    function _hasDomain(address verifier, string memory version, uint256 chainId) internal view {
        (bytes1 fields, string memory name, string memory said, uint256 id, address contract_, bytes32 salt,) =
            IERC5267(verifier).eip712Domain();
        bytes memory expected = abi.encode(bytes1(0x0f), "castellan", version, chainId, verifier, bytes32(0));
        vm.assertEq(abi.encode(fields, name, said, id, contract_, salt), expected, "domain");
    }

    /// @notice Creation code of a contract of the suite, without arguments.
    function _code(string memory name) internal view returns (bytes memory) {
        string memory shipped = string.concat("contracts/artifacts/", name, ".json");
        return vm.getCode(vm.envOr(string.concat("CASTELLAN_CODE_", name), shipped));
    }

    /// @notice Deploys a contract of the suite; reverts as its constructor does.
    function _create(string memory name, bytes memory arguments) internal returns (address) {
        return _create(bytes.concat(_code(name), arguments), 0);
    }

    function _create(bytes memory initCode, uint256 value) internal returns (address created) {
        assembly ("memory-safe") {
            created := create(value, add(initCode, 32), mload(initCode))
            if iszero(created) {
                let free := mload(0x40)
                returndatacopy(free, 0, returndatasize())
                revert(free, returndatasize())
            }
        }
    }
}
