// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Selected, Targets} from "../support/Targets.sol";
import {Owners} from "./Owners.sol";

contract OwnersTest is Targets {
    Owners private owners;

    function setUp() external {
        owners = new Owners();
        bytes4[9] memory tried = [
            Owners.sign.selector,
            Owners.submit.selector,
            Owners.sponsorOne.selector,
            Owners.name.selector,
            Owners.accept.selector,
            Owners.renounce.selector,
            Owners.upgrade.selector,
            Owners.replaceDeployer.selector,
            Owners.replaceSponsor.selector
        ];
        Selected storage target = _target(address(owners));
        for (uint256 i = 0; i < tried.length; ++i) target.selectors.push(tried[i]);
        // Signing and submitting are the larger half of what happens.
        for (uint256 i = 0; i < 3; ++i) {
            target.selectors.push(Owners.sign.selector);
            target.selectors.push(Owners.submit.selector);
        }
    }

    function invariant_a_threshold_is_met_by_distinct_keys_of_the_configuration_in_force() external view {
        owners.checkThreshold();
    }

    function invariant_owners_change_in_two_steps_and_nobody_else_changes_what_is_theirs() external view {
        owners.checkOwners();
    }

    function invariant_the_sponsors_deposit_falls_by_what_was_signed_for_and_no_more() external view {
        owners.checkSponsor();
    }
}
