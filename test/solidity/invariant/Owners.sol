// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {OwnedInTwoSteps} from "../../../contracts/src/OwnedInTwoSteps.sol";
import {PasskeyProof} from "../../../contracts/src/Proofs.sol";
import {Config} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {IEntryPointCommon, Op, Ops, Version} from "../support/Ops.sol";
import {Proving} from "../support/Proving.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {Vm, vm} from "../support/Vm.sol";

/// @notice Owners, a sponsor and successors act within and beyond their rights: too few signatures, one signature twice,
/// a replaced configuration, sponsorships for another op, calls out of turn. The expected state is kept outside
/// the contracts, and compared with theirs.
contract Owners is WalletTest {
    using Ops for Op;

    /// @dev An operation, who has signed it, and what it would install.
    struct Signed {
        Version version;
        Op op;
        uint256 signers;
        bool sound;
        uint64 configNonce;
        uint8 threshold;
        uint256 owners;
    }

    uint256 internal constant POOL = 5;

    Wallet internal wallet;
    uint256[] internal pool;
    Signed[] internal stock;
    Wallet internal sponsoredWallet;
    uint256 internal sponsoredKey;

    // Expected state.
    uint8 internal threshold;
    uint256 internal owners;
    uint64 internal configNonce = 1;
    string internal wrong;
    string internal misused;
    uint256 public landed;

    address[3] internal owner_;
    address[3] internal pendingOwner_;
    address internal implementation_;
    address internal deployer_;
    address internal sponsor_;

    uint256[3] internal deposits;
    uint256 public paid;

    constructor() {
        setUp();
        pool = Proving.owners(1, POOL);
        (threshold, owners) = (2, 7);
        wallet = _wallet(_config(threshold, owners));
        (sponsoredWallet, sponsoredKey) = _ecdsaWallet(500);
        owner_ = [beaconOwner, owner, owner];
        implementation_ = address(implementation);
        deployer_ = deployer;
        sponsor_ = sponsor;
        for (uint256 v = 0; v < 3; ++v) deposits[v] = _deposit(v);
    }

    function _config(uint8 least, uint256 members) private view returns (Config memory) {
        uint256[] memory keys = new uint256[](_ones(members));
        uint256 count;
        for (uint256 i = 0; i < POOL; ++i) if (members & (1 << i) != 0) keys[count++] = pool[i];
        return Proving.config(3, least, keys, new uint256[](0));
    }

    function _ones(uint256 set) private pure returns (uint256 count) {
        for (; set != 0; set &= set - 1) ++count;
    }

    function _deposit(uint256 v) private view returns (uint256) {
        return IEntryPointCommon(Ops.entryPoint(Version(v))).balanceOf(address(paymaster));
    }

    // ------------------------------------------------------------------------------------- what should be

    function checkThreshold() external view {
        vm.assertEq(wrong, "", "an operation landed");
        (Config memory config, uint64 number) = wallet.configuration();
        vm.assertEq(abi.encode(config), abi.encode(_config(threshold, owners)), "configuration");
        vm.assertEq(number, configNonce, "configNonce");
    }

    function checkOwners() external view {
        for (uint8 i = 0; i < 3; ++i) {
            vm.assertEq(_owned(i).owner(), owner_[i], "owner");
            vm.assertEq(_owned(i).pendingOwner(), pendingOwner_[i], "pending owner");
        }
        vm.assertEq(beacon.implementation(), implementation_, "implementation");
        vm.assertEq(factory.deployer(), deployer_, "deployer");
        vm.assertEq(paymaster.sponsor(), sponsor_, "sponsor");
    }

    function checkSponsor() external view {
        vm.assertEq(misused, "", "a sponsorship was used");
        for (uint256 v = 0; v < 3; ++v) vm.assertEq(_deposit(v), deposits[v], "deposit of the sponsor");
    }

    // ----------------------------------------------------------------------------------------- operations

    /// @notice Collects signatures for a payment or a rotation, from any key, in either form, some of them twice.
    function sign(uint8 version, uint256 seed) external {
        Signed memory made;
        made.version = Version(version % 3);
        made.configNonce = configNonce;
        bytes memory call = abi.encodeCall(wallet.execute, (stranger, 1, ""));
        if (seed % 3 == 0) {
            made.owners = 1 + (seed >> 8) % ((1 << POOL) - 1);
            made.threshold = uint8(1 + (seed >> 16) % _ones(made.owners));
            call = abi.encodeCall(wallet.setConfig, (_config(made.threshold, made.owners)));
            call = abi.encodeCall(wallet.execute, (address(wallet), 0, call));
        }
        made.op = _op(made.version, wallet, call);
        // A separate lane: operations do not wait for each other.
        made.op.nonce = IEntryPointCommon(Ops.entryPoint(made.version)).getNonce(
            address(wallet), _nonceKey(wallet, uint128(stock.length + 1))
        );
        // Half of them with as many distinct signers of the configuration in force as are needed, the rest by chance.
        _collect(made, seed, (seed >> 24) % 2 == 0);
        stock.push(made);
    }

    function _collect(Signed memory made, uint256 seed, bool fair) private view {
        bytes32 hash = made.op.hash(made.version);
        bytes memory parts;
        uint256 count = fair ? threshold : 1 + (seed >> 32) % 4;
        made.sound = true;
        uint256 next;
        for (uint256 i = 0; i < count; ++i) {
            uint256 who = (seed >> (40 + 8 * i)) % (POOL + 1);
            if (fair) {
                while (owners & (1 << next) == 0) ++next;
                who = next++;
            }
            uint256 key = who == POOL ? STRANGER_KEY : pool[who];
            bool personal = seed >> (100 + i) & 1 == 0;
            parts = bytes.concat(parts, personal ? Proving.personal(key, hash) : Proving.ecdsa(key, hash));
            made.sound = made.sound && who < POOL && made.signers & (1 << who) == 0;
            made.signers |= 1 << who;
        }
        bool mixed = seed >> 110 & 1 == 0;
        made.op.signature = _signature(unbound, mixed ? Proving.mixed(parts, new PasskeyProof[](0)) : parts);
    }

    /// @notice Submits what was signed, at any time later.
    function submit(uint256 which) external {
        if (stock.length == 0) return;
        Signed memory made = stock[which % stock.length];
        (bool success,) = _submit(made.version, Ops.only(made.op), bundler);
        if (!success) return;
        ++landed;
        // From here on the contracts have let it pass: it has to be right.
        if (!made.sound) wrong = "by a stranger, or by one signer twice";
        else if (made.configNonce != configNonce) wrong = "of another configuration";
        else if (made.signers & ~owners != 0) wrong = "by an unnamed signer";
        else if (_ones(made.signers) < threshold) wrong = "by too few";
        if (made.threshold == 0) return;
        (threshold, owners) = (made.threshold, made.owners);
        ++configNonce;
    }

    // ------------------------------------------------------------------------------------------- sponsorships

    /// @notice A sponsorship by the sponsor or a stranger, for one submitter or all, used by one of two.
    function sponsorOne(uint8 version, uint256 seed) external {
        uint256 v = version % 3;
        Op memory op = _op(Version(v), sponsoredWallet, "");
        bool bound = seed % 3 != 0;
        uint48 until = seed >> 8 & 3 == 0 ? uint48(block.timestamp - 1) : 0;
        op.paymasterAndData = _sponsorData(Version(v), until, 0, bound);
        op = _signed(op, Version(v), sponsoredKey);
        bytes32 hash = op.hash(Version(v));
        bool bySponsor = seed >> 16 & 3 != 0;
        address named = bound ? bundler : address(0);
        op.signature = bytes.concat(op.signature, _sponsorship(hash, named, bySponsor ? SPONSOR_KEY : STRANGER_KEY));
        address by = seed >> 24 & 1 == 0 ? bundler : stranger;
        // On either side of the line that the sponsor has drawn.
        bool allowed = until == 0 && (bySponsor ? sponsor : stranger) == sponsor_ && (!bound || by == bundler);
        vm.recordLogs();
        (bool success,) = _submit(Version(v), Ops.only(op), by);
        Vm.Log[] memory logs = vm.getRecordedLogs();
        if (!success) return;
        if (!allowed) misused = "that was not signed";
        deposits[v] -= _cost(logs, hash);
        ++paid;
    }

    /// @dev The operation's cost to its paymaster, as the EntryPoint logs it.
    function _cost(Vm.Log[] memory logs, bytes32 hash) private view returns (uint256 cost) {
        for (uint256 i = 0; i < logs.length; ++i) {
            if (logs[i].topics[0] != IEntryPointCommon.UserOperationEvent.selector) continue;
            if (logs[i].topics[1] != hash || logs[i].topics[3] != bytes32(uint256(uint160(address(paymaster))))) continue;
            (,, cost,) = abi.decode(logs[i].data, (uint256, bool, uint256, uint256));
        }
    }

    // -------------------------------------------------------------------------------------------------- owners

    function _owned(uint8 which) private view returns (OwnedInTwoSteps) {
        return OwnedInTwoSteps([address(beacon), address(factory), address(paymaster)][which % 3]);
    }

    function _actor(uint8 which) private view returns (address) {
        return [beaconOwner, owner, stranger, bundler][which % 4];
    }

    function _try(address by, address target, bytes memory data) private returns (bool success) {
        vm.prank(by);
        (success,) = target.call(data);
    }

    function name(uint8 which, uint8 by, uint8 successor) external {
        OwnedInTwoSteps owned = _owned(which);
        _try(_actor(by), address(owned), abi.encodeCall(owned.transferOwnership, (_actor(successor))));
        if (_actor(by) == owner_[which % 3]) pendingOwner_[which % 3] = _actor(successor);
    }

    function accept(uint8 which, uint8 by) external {
        OwnedInTwoSteps owned = _owned(which);
        _try(_actor(by), address(owned), abi.encodeCall(owned.acceptOwnership, ()));
        if (_actor(by) != pendingOwner_[which % 3]) return;
        (owner_[which % 3], pendingOwner_[which % 3]) = (_actor(by), address(0));
    }

    function renounce(uint8 which, uint8 by) external {
        OwnedInTwoSteps owned = _owned(which);
        _try(_actor(by), address(owned), abi.encodeCall(owned.renounceOwnership, ()));
    }

    function upgrade(uint8 by, bool there) external {
        address to = there ? address(ledger) : address(implementation);
        // The wallet that the other functions use has to stay one.
        uint256 state = vm.snapshotState();
        _try(_actor(by), address(beacon), abi.encodeCall(beacon.upgradeTo, (to)));
        bool changed = beacon.implementation() != implementation_;
        vm.revertToState(state);
        if (changed && _actor(by) != owner_[0]) implementation_ = address(0);
    }

    function replaceDeployer(uint8 by, uint8 named) external {
        _try(_actor(by), address(factory), abi.encodeCall(factory.setDeployer, (_actor(named))));
        if (_actor(by) == owner_[1]) deployer_ = _actor(named);
    }

    function replaceSponsor(uint8 by, bool back) external {
        address named = back ? sponsor : stranger;
        _try(_actor(by), address(paymaster), abi.encodeCall(paymaster.setSponsor, (named)));
        if (_actor(by) == owner_[2]) sponsor_ = named;
    }
}
