// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Base64} from "@openzeppelin/contracts/utils/Base64.sol";
import {PasskeyProof} from "../../../contracts/src/Proofs.sol";
import {Config} from "../../../contracts/src/Types.sol";
import {Wallet} from "../../../contracts/src/Wallet.sol";
import {Op, Ops, Version} from "../support/Ops.sol";
import {Proving} from "../support/Proving.sol";
import {WalletTest} from "../support/WalletTest.sol";
import {vm} from "../support/Vm.sol";

/// @notice Holders of passkeys pay, rotate their keys, name a recovery and recover, also with replaced passkeys, wrong
/// indices, unknown passkeys and invalid assertions. The expected state is kept outside the contracts, and compared
/// with theirs.
contract Rotations is WalletTest {
    using Ops for Op;

    /// @dev A wallet, and what should be in it.
    struct Kept {
        Wallet wallet;
        uint8 custody;
        uint256 members;
        uint64 configNonce;
        address recovery;
        uint48 delay;
        uint256 announced;
        uint48 readyAt;
    }

    enum Act {
        Pay,
        SetConfig,
        SetRecovery,
        CancelRecovery
    }

    /// @dev An operation, who has signed it, and what it does.
    struct Signed {
        uint256 which;
        Version version;
        Op op;
        uint256 who;
        uint8 index;
        bool sound;
        bool used;
        uint64 configNonce;
        Act act;
        uint256 members;
        address recovery;
        uint48 delay;
    }

    uint256 internal constant POOL = 4;

    Kept[2] internal kept;
    uint256[] internal pool;
    Signed[] internal stock;
    address[3] internal named;
    string internal wrong;
    uint256 public landed;

    constructor() {
        setUp();
        pool = Proving.passkeys(1, POOL);
        named = [vm.addr(uint256(keccak256("notary"))), vm.addr(uint256(keccak256("second device"))), address(0)];
        // A wallet whose own code verifies a passkey, and a wallet that uses the validator.
        uint8[2] memory custodies = [5, 4];
        for (uint256 i = 0; i < 2; ++i) {
            Kept storage one = kept[i];
            (one.custody, one.members, one.configNonce) = (custodies[i], 15, 1);
            one.wallet = _wallet(_config(one.custody, 15));
            vm.deal(address(one.wallet), 1_000 ether);
        }
    }

    function _config(uint8 custody, uint256 members) private view returns (Config memory) {
        uint256 count;
        for (uint256 i = 0; i < POOL; ++i) if (members & (1 << i) != 0) ++count;
        uint256[] memory keys = new uint256[](count);
        count = 0;
        for (uint256 i = 0; i < POOL; ++i) if (members & (1 << i) != 0) keys[count++] = pool[i];
        return Proving.config(custody, 1, Proving.owners(1, custody == 5 ? 0 : 1), keys);
    }

    /// @dev Whose passkey has this index; {POOL} where there is none.
    function _at(uint256 members, uint8 index) private pure returns (uint256 who) {
        uint256 before;
        for (; who < POOL; ++who) {
            if (members & (1 << who) == 0) continue;
            if (before++ == index) return who;
        }
    }

    // ------------------------------------------------------------------------------------- what should be

    function check() external view {
        vm.assertEq(wrong, "", "an operation");
        for (uint256 i = 0; i < 2; ++i) {
            Kept storage one = kept[i];
            (Config memory config, uint64 number) = one.wallet.configuration();
            vm.assertEq(abi.encode(config), abi.encode(_config(one.custody, one.members)), "configuration");
            vm.assertEq(number, one.configNonce, "configNonce");
            (address recovery, uint48 delay, bytes32 pending, uint48 readyAt) = one.wallet.recoveryState();
            vm.assertEq(recovery, one.recovery, "recovery address");
            vm.assertEq(delay, one.delay, "delay");
            bytes32 announced = one.readyAt == 0 ? bytes32(0) : Proving.hashOf(_config(one.custody, one.announced));
            vm.assertEq(pending, announced, "announced");
            vm.assertEq(readyAt, one.readyAt, "readyAt");
        }
    }

    function _rotated(Kept storage one, uint256 members) private {
        one.members = members;
        ++one.configNonce;
        (one.recovery, one.delay, one.readyAt) = (address(0), 0, 0);
    }

    function _members(uint256 seed) private pure returns (uint256) {
        return 1 + seed % ((1 << POOL) - 1);
    }

    // ----------------------------------------------------------------------------------------- operations

    /// @notice An operation by a passkey: half follow the configuration in force, half are random.
    function sign(uint8 which, uint8 version, uint256 seed) public {
        Signed memory made;
        (made.which, made.version) = (which % 2, Version(version % 3));
        Kept storage one = kept[made.which];
        made.configNonce = one.configNonce;
        made.act = Act(seed % 4);
        made.members = _members(seed >> 8);
        made.recovery = named[(seed >> 16) % 3];
        // On both sides of both bounds.
        made.delay = [uint48(0), 48 hours - 1, 48 hours, 72 hours, 365 days, 365 days + 1][(seed >> 24) % 6];
        made.op = _op(made.version, one.wallet, _call(made, one));
        made.op.nonce = uint256(_nonceKey(one.wallet, uint128(stock.length + 1))) << 64;

        made.index = uint8((seed >> 32) % (POOL + 1));
        made.who = (seed >> 40) % (POOL + 1);
        bool fair = (seed >> 48) % 2 == 0;
        if (fair) {
            while (_at(one.members, made.index) == POOL) made.index = made.index == 0 ? 0 : made.index - 1;
            made.who = _at(one.members, made.index);
        }
        uint256 key = made.who == POOL ? STRANGER_KEY >> 1 : pool[made.who];
        uint256 form = fair ? (seed >> 56) % 2 : (seed >> 56) % 6;
        made.sound = form < 3;
        PasskeyProof memory by = _assertion(key, made.op.hash(made.version), made.index, form);
        made.op.signature = _signature(unbound, Proving.single(by));
        stock.push(made);
    }

    function _call(Signed memory made, Kept storage one) private view returns (bytes memory) {
        Wallet wallet = one.wallet;
        if (made.act == Act.Pay) return abi.encodeCall(wallet.execute, (stranger, 1, ""));
        bytes memory inner = made.act == Act.SetConfig
            ? abi.encodeCall(wallet.setConfig, (_config(one.custody, made.members)))
            : made.act == Act.SetRecovery
            ? abi.encodeCall(wallet.setRecovery, (made.recovery, made.delay))
            : abi.encodeCall(wallet.cancelRecovery, ());
        return abi.encodeCall(wallet.execute, (address(wallet), 0, inner));
    }

    /// @dev Forms 0 to 2 are assertions. The others lack user verification, a comma, or a place in the object itself.
    function _assertion(uint256 key, bytes32 hash, uint8 index, uint256 form)
        private
        pure
        returns (PasskeyProof memory)
    {
        if (form == 0) return Proving.assertion(key, hash, index);
        string memory get = '"type":"webauthn.get"';
        string memory asked = string.concat('"challenge":"', Base64.encodeURL(abi.encodePacked(hash)), '"');
        if (form == 1) return Proving.signed(key, index, 0x05, string.concat("{", asked, ",", get, "}"), 59, 1);
        string memory plain = string.concat("{", get, ",", asked, "}");
        if (form == 2) return Proving.signed(key, index, 0x1d, plain, 1, 23);
        if (form == 3) return Proving.signed(key, index, 0x01, plain, 1, 23);
        if (form == 4) return Proving.signed(key, index, 0x05, string.concat("{", get, ":", asked, "}"), 1, 23);
        return Proving.signed(key, index, 0x05, string.concat('{"a":{', get, ",", asked, "}}"), 6, 28);
    }

    /// @notice Submits what was signed, at any time later. It lands if it is right, and only then.
    function submit(uint256 nth) public {
        if (stock.length == 0) return;
        Signed storage made = stock[nth % stock.length];
        Kept storage one = kept[made.which];
        bool right = made.sound && !made.used && made.configNonce == one.configNonce && made.who < POOL
            && _at(one.members, made.index) == made.who;
        (bool success,) = _submit(made.version, Ops.only(made.op), bundler);
        if (success != right) wrong = success ? "landed that should not" : "was refused that should land";
        if (!success) return;
        ++landed;
        made.used = true;
        if (made.act == Act.SetConfig) _rotated(one, made.members);
        if (made.act == Act.CancelRecovery) one.readyAt = 0;
        if (made.act != Act.SetRecovery) return;
        bool bounded = made.delay >= 48 hours && made.delay <= 365 days;
        if (made.recovery == address(0) ? made.delay != 0 : !bounded) return;
        (one.recovery, one.delay, one.readyAt) = (made.recovery, made.delay, 0);
    }

    /// @notice Signs and submits immediately.
    function operate(uint8 which, uint8 version, uint256 seed) external {
        sign(which, version, seed);
        submit(stock.length - 1);
    }

    // ------------------------------------------------------------------------------------------- recovery

    /// @dev The named address half of the time, otherwise any address.
    function _actor(Kept storage one, uint256 seed) private view returns (address) {
        if (seed % 2 == 0 && one.recovery != address(0)) return one.recovery;
        return [named[0], named[1], stranger, bundler][(seed >> 8) % 4];
    }

    /// @notice Same effect as a landed {Act.SetRecovery}, so that a recovery is named most of the time.
    function entrust(uint8 which, uint256 seed) external {
        Kept storage one = kept[which % 2];
        (one.recovery, one.delay, one.readyAt) = (named[seed % 2], uint48(48 hours + (seed >> 8) % 3 days), 0);
        vm.prank(address(one.wallet));
        one.wallet.setRecovery(one.recovery, one.delay);
    }

    function start(uint8 which, uint256 seed) external {
        Kept storage one = kept[which % 2];
        address by = _actor(one, seed);
        uint256 members = _members(seed >> 16);
        Config memory config = _config(one.custody, members);
        vm.prank(by);
        (bool success,) = address(one.wallet).call(abi.encodeCall(one.wallet.startRecovery, (config)));
        success;
        if (by != one.recovery) return;
        (one.announced, one.readyAt) = (members, uint48(block.timestamp) + one.delay);
    }

    function finish(uint8 which, uint256 seed) external {
        Kept storage one = kept[which % 2];
        address by = _actor(one, seed);
        uint256 members = seed >> 16 & 3 == 0 ? _members(seed >> 24) : one.announced;
        if (members == 0) return;
        Config memory config = _config(one.custody, members);
        vm.prank(by);
        (bool success,) = address(one.wallet).call(abi.encodeCall(one.wallet.finishRecovery, (config)));
        success;
        if (by != one.recovery || one.readyAt == 0 || members != one.announced) return;
        if (block.timestamp >= one.readyAt) _rotated(one, members);
    }

    function pass(uint24 time, bool far) external {
        vm.warp(block.timestamp + (far ? 100 days : uint256(time % 4 days)));
    }
}
