// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {ConfigRules} from "../../../contracts/src/ConfigRules.sol";
import {Config} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {WalletFactory} from "../../../contracts/src/WalletFactory.sol";
import {Configs} from "../support/Configs.sol";
import {Op, Ops, Version} from "../support/Ops.sol";
import {Proving} from "../support/Proving.sol";
import {Grant, WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

contract CreateWalletTest is WalletTest {
    using Ops for Op;

    event WalletCreated(address indexed wallet, bytes32 indexed create2Salt, bytes32 configHash);

    bytes32 private constant SALT = keccak256("salt");

    /// @dev Calls as `by` does, in a transaction of {bundler}.
    function _call(address by, bytes memory data) private returns (Wallet) {
        vm.prank(by, bundler);
        (bool success, bytes memory result) = address(factory).call(data);
        if (!success) {
            assembly ("memory-safe") {
                revert(add(result, 32), mload(result))
            }
        }
        return Wallet(payable(abi.decode(result, (address))));
    }

    function create(bytes memory data) external returns (Wallet) {
        return _call(Ops.senderCreator(Version.V07), data);
    }

    function _refuses(bytes memory data, bytes memory failure) private {
        vm.expectRevert(failure);
        this.create(data);
    }

    function _unauthorized(Grant memory signed, Grant memory used, Config memory config) private {
        _refuses(
            _creation(used, config, _authorization(signed, DEPLOYER_KEY)),
            abi.encodeWithSelector(WalletFactory.InvalidAuthorization.selector)
        );
    }

    // --------------------------------------------------------------------------------------------- creation

    function testFuzz_the_wallet_is_at_its_address_with_the_authorised_configuration(
        bytes32 saltHash,
        uint8 custody,
        bool legacy,
        uint256 seed
    ) external {
        custody = 1 + custody % 5;
        Config memory config = Configs.valid(custody, seed);
        Grant memory grant = _grant(saltHash, config);
        grant.legacy = legacy;
        address predicted = factory.getAddress(saltHash, custody, legacy);
        vm.expectEmit(address(factory));
        emit WalletCreated(
            predicted,
            legacy ? saltHash : keccak256(abi.encode(saltHash, uint256(custody))),
            Proving.hashOf(config)
        );
        Wallet wallet = this.create(_creation(grant, config, _authorization(grant, DEPLOYER_KEY)));
        vm.assertEq(address(wallet), predicted, "address");
        (Config memory installed, uint64 configNonce) = wallet.configuration();
        vm.assertEq(abi.encode(installed), abi.encode(config), "configuration");
        vm.assertEq(configNonce, 1, "configNonce");
    }

    function test_an_operation_of_each_EntryPoint_creates_its_own_sender() external {
        for (uint256 i = 0; i < 3; ++i) {
            for (uint8 custody = 1; custody <= 5; ++custody) {
                Op memory op = _creationOp(Version(i), keccak256(abi.encode(i)), Configs.valid(custody, i));
                vm.deal(op.sender, 1 ether);
                _handle(Version(i), op);
                vm.assertTrue(op.sender.code.length > 0, "created");
            }
        }
    }

    function test_a_wallet_that_exists_with_this_configuration_is_returned_as_it_is() external {
        Config memory config = Configs.valid(1, 1);
        Wallet wallet = this.create(_creation(SALT, config));
        Grant memory grant = _grant(SALT, config);
        grant.deadline = 0;
        vm.assertEq(address(this.create(_creation(grant, config, ""))), address(wallet), "without authorisation");
        (, uint64 configNonce) = wallet.configuration();
        vm.assertEq(configNonce, 1, "configNonce");
    }

    function testFuzz_a_wallet_that_exists_with_another_configuration_reverts_with_it(uint256 seed) external {
        Config memory first = Configs.valid(1, 1);
        Config memory second = Configs.valid(1, seed);
        vm.assume(first.owners[0] != second.owners[0]);
        Wallet wallet = this.create(_creation(SALT, first));
        _refuses(
            _creation(SALT, second),
            abi.encodeWithSelector(WalletFactory.WalletExists.selector, address(wallet), Proving.hashOf(first))
        );
        vm.prank(address(wallet));
        wallet.setConfig(second);
        _refuses(
            _creation(SALT, first),
            abi.encodeWithSelector(WalletFactory.WalletExists.selector, address(wallet), Proving.hashOf(second))
        );
    }

    function test_a_configuration_that_breaks_the_rules_is_not_installed() external {
        Config memory config = Configs.valid(1, 1);
        config.threshold = 2;
        _refuses(_creation(SALT, config), abi.encodeWithSelector(ConfigRules.InvalidThreshold.selector, 2));
    }

    function testFuzz_the_custody_is_that_of_the_configuration(uint256 custody) external {
        vm.assume(custody != 1);
        Config memory config = Configs.valid(1, 1);
        Grant memory grant = _grant(SALT, config);
        grant.custody = custody;
        _refuses(
            _creation(grant, config, _authorization(grant, DEPLOYER_KEY)),
            abi.encodeWithSelector(WalletFactory.CustodyMismatch.selector, custody, 1)
        );
    }

    // ---------------------------------------------------------------------------------------- authorisation

    function testFuzz_it_holds_from_now_to_its_deadline_and_an_hour_at_most(uint48 deadline) external {
        vm.assertEq(factory.MAX_AUTHORIZATION_LIFE(), 3_600, "seconds");
        Config memory config = Configs.valid(1, 1);
        Grant memory grant = _grant(SALT, config);
        grant.deadline = deadline;
        if (deadline >= block.timestamp && deadline <= block.timestamp + 1 hours) deadline = 0;
        grant.deadline = deadline;
        _refuses(
            _creation(grant, config, _authorization(grant, DEPLOYER_KEY)),
            abi.encodeWithSelector(WalletFactory.InvalidDeadline.selector, deadline)
        );
        grant.deadline = uint48(block.timestamp + 1 hours + 1);
        _refuses(
            _creation(grant, config, _authorization(grant, DEPLOYER_KEY)),
            abi.encodeWithSelector(WalletFactory.InvalidDeadline.selector, grant.deadline)
        );
        grant.deadline = uint48(block.timestamp);
        this.create(_creation(grant, config, _authorization(grant, DEPLOYER_KEY)));
        grant.saltHash = keccak256("another");
        grant.deadline = uint48(block.timestamp + 1 hours);
        this.create(_creation(grant, config, _authorization(grant, DEPLOYER_KEY)));
    }

    function testFuzz_it_is_for_exactly_these_arguments(bytes32 other, uint256 seed) external {
        vm.assume(other != SALT);
        Config memory config = Configs.valid(3, 1);
        Grant memory used = _grant(SALT, config);
        Grant memory signed = _grant(SALT, config);
        signed.saltHash = other;
        _unauthorized(signed, used, config);
        signed = _grant(SALT, config);
        signed.custody = 4;
        _unauthorized(signed, used, config);
        signed = _grant(SALT, config);
        signed.legacy = true;
        _unauthorized(signed, used, config);
        signed = _grant(SALT, config);
        signed.configHash = Proving.hashOf(Configs.valid(3, 1 + seed % 90));
        vm.assume(signed.configHash != used.configHash);
        _unauthorized(signed, used, config);
        signed = _grant(SALT, config);
        signed.deadline -= 1;
        _unauthorized(signed, used, config);
    }

    function testFuzz_it_is_for_the_submitter_that_it_names(address other) external {
        vm.assume(other != bundler && other != address(0));
        Config memory config = Configs.valid(1, 1);
        Grant memory grant = _grant(SALT, config);
        grant.bundler = other;
        _unauthorized(grant, _grant(SALT, config), config);
    }

    function testFuzz_unbound_it_is_for_everybody(address origin, address caller) external {
        Config memory config = Configs.valid(1, 1);
        Grant memory grant = _grant(SALT, config);
        grant.bundler = address(0);
        bytes memory data = _creation(grant, config, _authorization(grant, DEPLOYER_KEY));
        vm.prank(caller, origin);
        (bool success,) = address(factory).call(data);
        vm.assertTrue(success, "created");
        (Config memory installed,) = _predicted(SALT, 1).configuration();
        vm.assertEq(abi.encode(installed), abi.encode(config), "as authorised");
    }

    function test_neither_form_can_be_made_of_the_other() external {
        Config memory config = Configs.valid(1, 1);
        Grant memory grant = _grant(SALT, config);
        bytes memory failure = abi.encodeWithSelector(WalletFactory.InvalidAuthorization.selector);
        bytes memory bound = _authorization(grant, DEPLOYER_KEY);
        _refuses(_creation(grant, config, bytes.concat(bound, hex"01")), failure);
        _refuses(_creation(grant, config, bytes.concat(bound, hex"00")), failure);
        grant.bundler = address(0);
        bytes memory unbound_ = _authorization(grant, DEPLOYER_KEY);
        assembly ("memory-safe") {
            mstore(unbound_, 65)
        }
        _refuses(_creation(grant, config, unbound_), failure);
    }

    function testFuzz_bytes_that_are_no_signature_authorise_nothing(bytes calldata junk) external {
        Config memory config = Configs.valid(1, 1);
        _refuses(
            _creation(_grant(SALT, config), config, junk),
            abi.encodeWithSelector(WalletFactory.InvalidAuthorization.selector)
        );
        _refuses(
            _creation(_grant(SALT, config), config, new bytes(65)),
            abi.encodeWithSelector(WalletFactory.InvalidAuthorization.selector)
        );
        Grant memory grant = _grant(SALT, config);
        _refuses(
            _creation(grant, config, Proving.flipped(_authorization(grant, DEPLOYER_KEY))),
            abi.encodeWithSelector(WalletFactory.InvalidAuthorization.selector)
        );
    }

    function testFuzz_another_key_authorises_nothing(uint256 key) external {
        key = 1 + key % (Proving.N_SECP256K1 - 1);
        vm.assume(key != DEPLOYER_KEY);
        Config memory config = Configs.valid(1, 1);
        Grant memory grant = _grant(SALT, config);
        _refuses(
            _creation(grant, config, _authorization(grant, key)),
            abi.encodeWithSelector(WalletFactory.InvalidAuthorization.selector)
        );
    }

    function test_it_is_for_this_chain_and_this_factory() external {
        Config memory config = Configs.valid(1, 1);
        Grant memory grant = _grant(SALT, config);
        bytes memory failure = abi.encodeWithSelector(WalletFactory.InvalidAuthorization.selector);
        bytes memory data = _creation(grant, config, _authorization(grant, DEPLOYER_KEY));
        uint256 here = block.chainid;
        vm.chainId(here + 1);
        _refuses(data, failure);
        vm.chainId(here);
        bytes memory arguments = bytes.concat(abi.encode(beacon, deployer, owner), _entryPoints());
        factory = WalletFactory(_create("WalletFactory", arguments));
        _refuses(data, failure);
    }

    // ------------------------------------------------------------------------------------------ direct calls

    function testFuzz_a_direct_caller_gets_the_wallet_and_no_authority_of_the_deployer(address caller) external {
        Config memory config = Configs.valid(1, 1);
        Wallet wallet = _call(caller, _creation(SALT, config));
        vm.deal(address(wallet), 1 ether);
        for (uint256 i = 0; i < 3; ++i) {
            Op memory op = _signed(_op(Version(i), wallet, ""), Version(i), DEPLOYER_KEY);
            _refused(Version(i), op, "AA24 signature error");
        }
    }

    function test_the_call_and_an_operation_in_one_transaction_give_the_deployer_no_authority() external {
        Config memory config = Configs.valid(1, 1);
        bytes memory creation = _creation(SALT, config);
        Wallet wallet = _predicted(SALT, 1);
        vm.deal(address(wallet), 1 ether);
        Op memory op = _op(Version.V07, wallet, "");
        op = _signed(op, Version.V07, DEPLOYER_KEY);
        bytes memory bundle = Ops.bundle(Ops.only(op), Version.V07, stranger);
        Both both = new Both();
        vm.prank(bundler, bundler);
        vm.assertFalse(both.run(address(factory), creation, Ops.ENTRY_POINT_V07, bundle), "the bundle is refused");
    }

    function test_an_address_that_is_taken_by_something_else_is_refused() external {
        Config memory config = Configs.valid(1, 1);
        bytes memory data = _creation(SALT, config);
        Wallet wallet = _predicted(SALT, 1);
        // An account with a nonce and without code: no CREATE2 succeeds there.
        vm.setNonce(address(wallet), 1);
        _refuses(data, abi.encodeWithSelector(WalletFactory.DeploymentFailed.selector));
    }
}

/// @notice Two calls of one transaction: the first has to succeed.
contract Both {
    function run(address a, bytes calldata first, address b, bytes calldata second) external returns (bool success) {
        (success,) = a.call(first);
        require(success);
        (success,) = b.call(second);
    }
}
