// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {WalletFactory} from "../../../contracts/src/WalletFactory.sol";
import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

contract ConstructorTest is Suite {
    event DeployerChanged(address indexed previous, address indexed current);

    function deploy(address first, address owner_) external returns (WalletFactory) {
        return
            WalletFactory(_create("WalletFactory", bytes.concat(abi.encode(beacon, first, owner_), _entryPoints())));
    }

    function testFuzz_it_takes_beacon_deployer_and_owner_from_its_arguments(address first, address owner_) external {
        vm.assume(first != address(0) && owner_ != address(0));
        vm.expectEmit();
        emit DeployerChanged(address(0), first);
        WalletFactory made = this.deploy(first, owner_);
        vm.assertEq(made.beacon(), address(beacon), "beacon");
        vm.assertEq(made.deployer(), first, "deployer");
        vm.assertEq(made.owner(), owner_, "owner");
        vm.assertEq(made.initCodeHash(), factory.initCodeHash(), "initCodeHash");
        _hasDomain(address(made), "1", block.chainid);
        vm.chainId(block.chainid + 1);
        _hasDomain(address(made), "1", block.chainid);
    }

    function testFuzz_addresses_are_by_CREATE2_of_the_proxy_and_of_salt_and_custody(bytes32 saltHash, uint256 custody)
        external
        view
    {
        bytes32 initCodeHash = keccak256(bytes.concat(_code("WalletProxy"), abi.encode(beacon, "")));
        vm.assertEq(factory.initCodeHash(), initCodeHash, "initCodeHash");
        bytes32[2] memory salts = [keccak256(abi.encode(saltHash, custody)), saltHash];
        for (uint256 i = 0; i < 2; ++i) {
            bytes32 hash = keccak256(abi.encodePacked(bytes1(0xff), address(factory), salts[i], initCodeHash));
            address found = factory.getAddress(saltHash, custody, i == 1);
            vm.assertEq(found, address(uint160(uint256(hash))), i == 1 ? "legacy" : "address");
        }
    }

    function test_a_deployer_is_not_the_zero_address() external {
        vm.expectRevert(abi.encodeWithSelector(WalletFactory.InvalidDeployer.selector));
        this.deploy(address(0), owner);
    }

    function test_an_owner_is_not_the_zero_address() external {
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableInvalidOwner.selector, address(0)));
        this.deploy(deployer, address(0));
    }
}
