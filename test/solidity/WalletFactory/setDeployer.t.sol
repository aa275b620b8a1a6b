// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {Config} from "../../../contracts/src/Types.sol";
import {WalletFactory} from "../../../contracts/src/WalletFactory.sol";
import {Configs} from "../support/Configs.sol";
import {Op, Version} from "../support/Ops.sol";
import {Grant, WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract SetDeployerTest is WalletTest {
    event DeployerChanged(address indexed previous, address indexed current);

    function testFuzz_replaces_the_deployer(address named) external {
        vm.assume(named != address(0));
        vm.expectEmit(address(factory));
        emit DeployerChanged(deployer, named);
        vm.prank(owner);
        factory.setDeployer(named);
        vm.assertEq(factory.deployer(), named, "deployer");
        vm.assertEq(vm.load(address(factory), 0), bytes32(uint256(uint160(named))), "slot 0");
    }

    function test_what_the_former_one_has_authorised_is_void_and_the_new_one_authorises() external {
        bytes32 saltHash = keccak256("salt");
        Config memory config = Configs.valid(1, 1);
        Op memory op = _creationOp(Version.V07, saltHash, config);
        vm.deal(op.sender, 1 ether);
        vm.prank(owner);
        factory.setDeployer(stranger);
        _refused(Version.V07, op, "AA13 initCode failed or OOG");
        Grant memory grant = _grant(saltHash, config);
        bytes memory creation = _creation(grant, config, _authorization(grant, STRANGER_KEY));
        op.initCode = abi.encodePacked(address(factory), creation);
        _refused(Version.V07, _signed(op, Version.V07, DEPLOYER_KEY), "AA24 signature error");
        _handle(Version.V07, _signed(op, Version.V07, STRANGER_KEY));
    }

    function test_the_zero_address_is_refused() external {
        vm.prank(owner);
        vm.expectRevert(abi.encodeWithSelector(WalletFactory.InvalidDeployer.selector));
        factory.setDeployer(address(0));
    }

    function testFuzz_only_the_owner_may_call(address caller) external {
        vm.assume(caller != owner);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, caller));
        factory.setDeployer(caller);
    }
}
