// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Selected, Targets} from "../support/Targets.sol";
import {Strangers} from "./Strangers.sol";

contract StrangersTest is Targets {
    Strangers private strangers;

    function setUp() external {
        strangers = new Strangers();
        bytes4[11] memory tried = [
            Strangers.callWallet.selector,
            Strangers.callValidation.selector,
            Strangers.callSuite.selector,
            Strangers.callRaw.selector,
            Strangers.forge.selector,
            Strangers.copy.selector,
            Strangers.replay.selector,
            Strangers.nest.selector,
            Strangers.create.selector,
            Strangers.steal.selector,
            Strangers.delegate.selector
        ];
        Selected storage target = _target(address(strangers));
        for (uint256 i = 0; i < tried.length; ++i) target.selectors.push(tried[i]);
        target.selectors.push(Strangers.pass.selector);
    }

    function invariant_no_stranger_changes_configuration_balance_or_deposit_of_a_wallet() external view {
        strangers.checkWallets();
    }

    function invariant_no_stranger_changes_the_suite_or_spends_the_sponsors_deposit() external view {
        strangers.checkSuite();
    }

    function invariant_a_creation_has_the_authorised_configuration() external view {
        strangers.checkCreations();
    }
}
