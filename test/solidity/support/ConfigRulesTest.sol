// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ConfigRules} from "../../../contracts/src/ConfigRules.sol";
import {Config, PublicKey} from "../../../contracts/src/Types.sol";
import {Configs} from "./Configs.sol";
import {Proving} from "./Proving.sol";
import {WalletTest} from "./WalletTest.sol";
import {vm} from "./Vm.sol";

/// @notice Configurations that every function refuses, by their exact errors.
/// @dev {_installs} calls the function under test with a configuration, as an authorised caller.
abstract contract ConfigRulesTest is WalletTest {
    uint256[] private none;

    function _installs(Config memory config) internal virtual;

    function _refuses(Config memory config, bytes memory failure) internal {
        vm.expectRevert(failure);
        this.install(config);
    }

    function install(Config memory config) external {
        _installs(config);
    }

    function testFuzz_custody_is_one_of_1_to_5(uint8 custody) external {
        vm.assume(custody == 0 || custody > 5);
        Config memory config = Proving.config(custody, 1, Proving.owners(1, 1), none);
        _refuses(config, abi.encodeWithSelector(ConfigRules.InvalidCustody.selector, custody));
    }

    function test_owners_are_as_many_as_the_custody_has() external {
        for (uint8 custody = 1; custody <= 5; ++custody) {
            uint256[] memory passkeys = custody == 1 || custody == 3 ? none : Proving.passkeys(1, 1);
            uint256[3] memory counts = [uint256(0), 2, 17];
            for (uint256 i = 0; i < 3; ++i) {
                uint256 count = custody == 5 && i == 0 ? 1 : counts[i];
                if ((custody == 3 || custody == 4) && count == 2) continue;
                Config memory config = Proving.config(custody, 1, Proving.owners(1, count), passkeys);
                _refuses(config, abi.encodeWithSelector(ConfigRules.InvalidOwnerCount.selector, count));
            }
        }
    }

    function test_passkeys_are_as_many_as_the_custody_has() external {
        for (uint8 custody = 1; custody <= 5; ++custody) {
            bool keyless = custody == 1 || custody == 3;
            uint256[] memory owners = custody == 5 ? none : Proving.owners(1, 1);
            Config memory config = Proving.config(custody, 1, owners, keyless ? Proving.passkeys(1, 1) : none);
            _refuses(config, abi.encodeWithSelector(ConfigRules.InvalidPasskeyCount.selector, keyless ? 1 : 0));
            config.passkeys = Proving.config(5, 1, none, Proving.passkeys(1, 17)).passkeys;
            _refuses(config, abi.encodeWithSelector(ConfigRules.InvalidPasskeyCount.selector, 17));
        }
    }

    function testFuzz_threshold_is_at_least_1_and_at_most_the_validators(uint8 custody, uint256 seed, uint8 over)
        external
    {
        custody = 1 + custody % 5;
        Config memory config = Configs.valid(custody, seed);
        uint256 most = custody == 3 || custody == 4 ? config.owners.length + config.passkeys.length : 1;
        config.threshold = 0;
        _refuses(config, abi.encodeWithSelector(ConfigRules.InvalidThreshold.selector, 0));
        config.threshold = uint8(most + 1 + over % (255 - most));
        _refuses(config, abi.encodeWithSelector(ConfigRules.InvalidThreshold.selector, config.threshold));
    }

    function testFuzz_owners_are_strictly_ascending(uint256 seed, uint256 which) external {
        Config memory config = Proving.config(3, 1, Proving.owners(seed % 97, 2 + seed % 15), none);
        uint256 last = config.owners.length - 1;
        uint256 i = which % last;
        address former = config.owners[i + 1];
        config.owners[i + 1] = config.owners[i];
        _refuses(config, abi.encodeWithSelector(ConfigRules.InvalidOwner.selector, config.owners[i]));
        config.owners[i] = former;
        _refuses(config, abi.encodeWithSelector(ConfigRules.InvalidOwner.selector, config.owners[i + 1]));
    }

    function test_an_owner_is_not_the_zero_address() external {
        for (uint8 custody = 1; custody <= 4; ++custody) {
            Config memory config = Configs.valid(custody, 0);
            config.owners[0] = address(0);
            _refuses(config, abi.encodeWithSelector(ConfigRules.InvalidOwner.selector, address(0)));
        }
    }

    function testFuzz_passkeys_are_strictly_ascending(uint256 which) external {
        Config memory config = Proving.config(5, 1, none, Proving.passkeys(which % 89, 4));
        uint256 i = which % 3;
        PublicKey memory former = config.passkeys[i + 1];
        config.passkeys[i + 1] = config.passkeys[i];
        _refuses(
            config,
            abi.encodeWithSelector(ConfigRules.InvalidPasskey.selector, config.passkeys[i].x, config.passkeys[i].y)
        );
        config.passkeys[i] = former;
        PublicKey memory lower = config.passkeys[i + 1];
        _refuses(config, abi.encodeWithSelector(ConfigRules.InvalidPasskey.selector, lower.x, lower.y));
    }

    function test_two_passkeys_of_one_x_are_ascending_by_y() external {
        uint256 p = 0xffffffff00000001000000000000000000000000ffffffffffffffffffffffff;
        PublicKey memory a = Proving.point(7);
        PublicKey memory b = PublicKey(a.x, bytes32(p - uint256(a.y)));
        (PublicKey memory low, PublicKey memory high) = a.y < b.y ? (a, b) : (b, a);
        Config memory config = Proving.config(5, 1, none, Proving.passkeys(1, 2));
        (config.passkeys[0], config.passkeys[1]) = (high, low);
        _refuses(config, abi.encodeWithSelector(ConfigRules.InvalidPasskey.selector, low.x, low.y));
    }

    function testFuzz_a_passkey_is_a_point_of_the_curve(bytes32 x, bytes32 y) external {
        Config memory config = Proving.config(5, 1, none, Proving.passkeys(1, 1));
        config.passkeys[0] = PublicKey(x, y);
        _refuses(config, abi.encodeWithSelector(ConfigRules.InvalidPasskey.selector, x, y));
        config.passkeys[0] = PublicKey(0, 0);
        _refuses(config, abi.encodeWithSelector(ConfigRules.InvalidPasskey.selector, bytes32(0), bytes32(0)));
    }
}
