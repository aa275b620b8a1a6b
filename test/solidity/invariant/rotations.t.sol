// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Selected, Targets} from "../support/Targets.sol";
import {Rotations} from "./Rotations.sol";

contract RotationsTest is Targets {
    Rotations private rotations;

    function setUp() external {
        rotations = new Rotations();
        Selected storage target = _target(address(rotations));
        target.selectors.push(Rotations.entrust.selector);
        target.selectors.push(Rotations.start.selector);
        target.selectors.push(Rotations.finish.selector);
        target.selectors.push(Rotations.pass.selector);
        // Signing and submitting are the larger half of what happens.
        for (uint256 i = 0; i < 2; ++i) {
            target.selectors.push(Rotations.operate.selector);
            target.selectors.push(Rotations.sign.selector);
            target.selectors.push(Rotations.submit.selector);
        }
    }

    function invariant_a_rotation_leaves_no_passkey_and_no_recovery_of_before() external view {
        rotations.check();
    }
}
