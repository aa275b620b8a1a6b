// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ConfigRules} from "../../../contracts/src/ConfigRules.sol";
import {Config} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {WalletProxy} from "../../../contracts/src/WalletProxy.sol";
import {Configs} from "../support/Configs.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract NamesNothing {
    function implementation() external pure returns (address) {
        return address(0xdead);
    }
}

contract NamesTooShort {
    fallback() external {
        assembly {
            return(0, 31)
        }
    }
}

contract ConstructorTest is WalletTest {
    event BeaconUpgraded(address indexed beacon);

    function deploy(address named, bytes memory data, uint256 value) external payable returns (address) {
        return _create(bytes.concat(_code("WalletProxy"), abi.encode(named, data)), value);
    }

    function _invalid(address named) private {
        vm.expectRevert(abi.encodeWithSelector(WalletProxy.InvalidBeacon.selector, named));
        this.deploy(named, "", 0);
    }

    function test_explorers_are_told_the_beacon() external {
        vm.expectEmit();
        emit BeaconUpgraded(address(beacon));
        this.deploy(address(beacon), "", 0);
    }

    function test_a_call_that_comes_with_it_is_made_by_the_implementation() external {
        Config memory config = Configs.valid(3, 5);
        bytes memory data = abi.encodeCall(implementation.initialize, (config, stranger));
        Wallet wallet = Wallet(payable(this.deploy(address(beacon), data, 0)));
        (Config memory installed,) = wallet.configuration();
        vm.assertEq(abi.encode(installed), abi.encode(config), "configuration");
    }

    function test_the_failure_of_that_call_is_the_deployments() external {
        Config memory config = Configs.valid(3, 5);
        config.threshold = 0;
        vm.expectRevert(abi.encodeWithSelector(ConfigRules.InvalidThreshold.selector, 0));
        this.deploy(address(beacon), abi.encodeCall(implementation.initialize, (config, stranger)), 0);
    }

    function testFuzz_value_without_a_call_is_refused(uint64 value) external {
        vm.assume(value > 0);
        vm.deal(address(this), value);
        vm.expectRevert(abi.encodeWithSelector(WalletProxy.NonPayable.selector));
        this.deploy{value: value}(address(beacon), "", value);
    }

    function testFuzz_a_beacon_without_code_is_none(address named) external {
        vm.assume(named.code.length == 0 && uint160(named) > 0x100);
        _invalid(named);
    }

    function test_a_beacon_names_an_implementation_that_has_code() external {
        _invalid(address(new NamesNothing()));
        _invalid(address(new NamesTooShort()));
        _invalid(address(ledger));
    }
}
