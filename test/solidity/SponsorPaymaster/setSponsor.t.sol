// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {SponsorPaymaster} from "../../../contracts/src/SponsorPaymaster.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Op, Version} from "../support/Ops.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract SetSponsorTest is WalletTest {
    event SponsorChanged(address indexed previous, address indexed current);

    function testFuzz_replaces_the_sponsor(address named) external {
        vm.assume(named != address(0));
        vm.expectEmit(address(paymaster));
        emit SponsorChanged(sponsor, named);
        vm.prank(owner);
        paymaster.setSponsor(named);
        vm.assertEq(paymaster.sponsor(), named, "sponsor");
    }

    function test_what_the_former_one_has_signed_is_void() external {
        (Wallet wallet, uint256 key) = _ecdsaWallet(1);
        for (uint256 i = 0; i < 3; ++i) {
            Op memory op = _sponsored(_op(Version(i), wallet, ""), Version(i), key);
            vm.prank(owner);
            paymaster.setSponsor(stranger);
            _refused(Version(i), op, "AA34 signature error");
            vm.prank(owner);
            paymaster.setSponsor(sponsor);
            _handle(Version(i), op);
        }
    }

    function test_the_zero_address_is_refused() external {
        vm.prank(owner);
        vm.expectRevert(abi.encodeWithSelector(SponsorPaymaster.InvalidSponsor.selector));
        paymaster.setSponsor(address(0));
    }

    function testFuzz_only_the_owner_may_call(address caller) external {
        vm.assume(caller != owner);
        vm.prank(caller);
        vm.expectRevert(abi.encodeWithSelector(Ownable.OwnableUnauthorizedAccount.selector, caller));
        paymaster.setSponsor(caller);
    }
}
