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
