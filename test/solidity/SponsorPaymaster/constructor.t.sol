// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {SponsorPaymaster} from "../../../contracts/src/SponsorPaymaster.sol";
import {Suite} from "../support/Suite.sol";
import {vm} from "../support/Vm.sol";

contract ConstructorTest is Suite {
    event SponsorChanged(address indexed previous, address indexed current);

    function deploy(address first, address owner_) external returns (SponsorPaymaster) {
        return
            SponsorPaymaster(_create("SponsorPaymaster", bytes.concat(abi.encode(first, owner_), _entryPoints())));
    }

    function testFuzz_it_takes_sponsor_and_owner_from_its_arguments(address first, address owner_) external {
        vm.assume(first != address(0) && owner_ != address(0));
        vm.expectEmit();
        emit SponsorChanged(address(0), first);
        SponsorPaymaster made = this.deploy(first, owner_);
        vm.assertEq(made.sponsor(), first, "sponsor");
        vm.assertEq(made.owner(), owner_, "owner");
        _hasDomain(address(made), "1", block.chainid);
        vm.chainId(block.chainid + 1);
        _hasDomain(address(made), "1", block.chainid);
    }

    function test_a_sponsor_is_not_the_zero_address() external {
        vm.expectRevert(abi.encodeWithSelector(SponsorPaymaster.InvalidSponsor.selector));
        this.deploy(address(0), owner);
    }

    function test_an_owner_is_not_the_zero_address() external {
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableInvalidOwner.selector, address(0)));
        this.deploy(sponsor, address(0));
    }
}
