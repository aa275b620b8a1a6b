// SPDX-License-Identifier: MIT
pragma solidity 0.8.37;

import {Ownable} from "@openzeppelin/contracts/access/Ownable.sol";
import {ECDSA} from "@openzeppelin/contracts/utils/cryptography/ECDSA.sol";
import {EIP712} from "@openzeppelin/contracts/utils/cryptography/EIP712.sol";
import {OwnedInTwoSteps} from "./OwnedInTwoSteps.sol";
import {Config, IWallet} from "./Types.sol";
import {WalletProxy} from "./WalletProxy.sol";

/// @dev A separate base, and the first one, to keep the deployer in storage slot 0: gas estimators override that slot.
abstract contract DeployerSlot {
    address internal _deployer;
}

/// @title WalletFactory
/// @notice Deploys the wallets of one tenant at addresses that depend on salt and custody only, against an
/// authorisation of the tenant's deployer.
/// @dev The address does not bind the configuration, so the deployer decides who gets an address that is funded but
/// not deployed: it is a custody key. It can be replaced by the owner, because a lost one would lock all those addresses.
///
/// An authorisation names the EOA whose transaction may use it (tx.origin). The SenderCreators of EntryPoint v0.6 and
/// v0.7 serve every caller: a copy of an authorisation from a pending bundle could deploy the wallet first and make the
/// bundle revert with AA10. An unbound authorisation, one byte longer, is valid for every EOA and does not read
/// tx.origin: bundlers that submit from their own EOAs and verifiers of ERC-6492 need it.
///
/// Any address may call {createWallet}. Only behind a SenderCreator does the wallet record the deployer, whose
/// signature then authorises the first operation. A direct call only deploys the authorised wallet.
contract WalletFactory is DeployerSlot, OwnedInTwoSteps, EIP712 {
    bytes32 private constant DEPLOY_TYPE_HASH = keccak256(
        "Deploy(bytes32 saltHash,uint256 custody,bool legacy,bytes32 configHash,uint48 deadline,address bundler)"
    );

    /// @dev Bytes of an authorisation in front of the mark of an unbound one.
    uint256 private constant SIGNATURE = 65;

    /// @dev The last byte of an unbound authorisation.
    bytes1 private constant UNBOUND = 0x01;

    /// @notice Longest life of an authorisation. Callable by any address.
    /// @return Seconds.
    uint256 public constant MAX_AUTHORIZATION_LIFE = 1 hours;

    /// @notice The beacon of every wallet of this factory. Callable by any address.
    /// @return Its address, which never changes.
    address public immutable beacon;
    /// @notice Hash of the init code, which with the salt determines a wallet's address. Callable by any address.
    /// @return keccak256 of the proxy's creation code with its arguments (beacon, no data).
    bytes32 public immutable initCodeHash;

    address private immutable SENDER_CREATOR_V06;
    address private immutable SENDER_CREATOR_V07;
    address private immutable SENDER_CREATOR_V08;

    /// @notice A wallet was deployed and initialised.
    /// @param wallet Its address.
    /// @param create2Salt The salt of its CREATE2.
    /// @param configHash keccak256(abi.encode(config)).
    event WalletCreated(address indexed wallet, bytes32 indexed create2Salt, bytes32 configHash);
    /// @notice Deployments are authorised by another key from now on.
    /// @param previous The former deployer; the zero address in the constructor.
    /// @param current The new one.
    event DeployerChanged(address indexed previous, address indexed current);

    /// @notice The authorisation has expired, or is valid for longer than {MAX_AUTHORIZATION_LIFE}.
    /// @param deadline Last second (Unix) of the authorisation.
    error InvalidDeadline(uint48 deadline);
    /// @notice The authorisation is not the deployer's over exactly these arguments, or names another submitter.
    error InvalidAuthorization();
    /// @notice The configuration's custody differs from the address's.
    /// @param custody The custody of the address.
    /// @param configCustody The custody of the configuration.
    error CustodyMismatch(uint256 custody, uint8 configCustody);
    /// @notice The wallet exists with another configuration.
    /// @param wallet Its address.
    /// @param configHash keccak256(abi.encode(config)) of the configuration that it has.
    error WalletExists(address wallet, bytes32 configHash);
    /// @notice CREATE2 failed.
    error DeploymentFailed();
    /// @notice The zero address cannot be deployer.
    error InvalidDeployer();

    /// @param beacon_ The beacon of all wallets.
    /// @param deployer_ First signer of authorisations.
    /// @param owner_ May replace the deployer, and nothing else.
    /// @param entryPointV06 EntryPoint v0.6, behind whose SenderCreator the deployer signs for the new wallet.
    /// @param entryPointV07 Likewise for v0.7.
    /// @param entryPointV08 Likewise for v0.8.
    constructor(
        address beacon_,
        address deployer_,
        address owner_,
        address entryPointV06,
        address entryPointV07,
        address entryPointV08
    ) Ownable(owner_) EIP712("castellan", "1") {
        beacon = beacon_;
        initCodeHash = keccak256(_initCode(beacon_));
        SENDER_CREATOR_V06 = _firstCreateOf(entryPointV06);
        SENDER_CREATOR_V07 = _firstCreateOf(entryPointV07);
        SENDER_CREATOR_V08 = _firstCreateOf(entryPointV08);
        _setDeployer(deployer_);
    }

    /// @notice Deploys and initialises a wallet. An existing wallet with this configuration is returned unchanged.
    /// Callable by any address, in a transaction of the EOA that the authorisation names.
    /// @param saltHash keccak256 of the salt's UTF-8 bytes.
    /// @param custody Part of the address unless `legacy`, and always the custody of `config`.
    /// @param legacy The address depends only on `saltHash`.
    /// @param config The wallet's validators.
    /// @param deadline Last second (Unix) at which the authorisation holds.
    /// @param authorization The deployer's r || s || v over the EIP-712 digest of
    /// Deploy(saltHash, custody, legacy, configHash, deadline, bundler) in the domain ("castellan", "1", chain id, this
    /// factory). `bundler` is tx.origin. An unbound authorisation signs the zero address and appends 0x01.
    /// @return wallet Its address.
    function createWallet(
        bytes32 saltHash,
        uint256 custody,
        bool legacy,
        Config calldata config,
        uint48 deadline,
        bytes calldata authorization
    ) external returns (address wallet) {
        if (config.custody != custody) revert CustodyMismatch(custody, config.custody);

        bytes32 configHash = keccak256(abi.encode(config));
        bytes32 salt = _create2Salt(saltHash, custody, legacy);
        wallet = _addressOf(salt);
        if (wallet.code.length > 0) {
            (Config memory current, ) = IWallet(wallet).configuration();
            bytes32 currentHash = keccak256(abi.encode(current));
            if (currentHash != configHash) revert WalletExists(wallet, currentHash);
            return wallet;
        }

        if (deadline < block.timestamp || deadline > block.timestamp + MAX_AUTHORIZATION_LIFE)
            revert InvalidDeadline(deadline);
        address bundler;
        if (authorization.length == SIGNATURE) bundler = tx.origin;
        else if (authorization.length != SIGNATURE + 1 || authorization[SIGNATURE] != UNBOUND)
            revert InvalidAuthorization();
        address authorizer = _deployer;
        bytes32 digest = _hashTypedDataV4(
            keccak256(abi.encode(DEPLOY_TYPE_HASH, saltHash, custody, legacy, configHash, deadline, bundler))
        );
        (address signer, ECDSA.RecoverError failure, ) =
            ECDSA.tryRecoverCalldata(digest, authorization[:SIGNATURE]);
        if (failure != ECDSA.RecoverError.NoError || signer != authorizer) revert InvalidAuthorization();

        bytes memory initCode = _initCode(beacon);
        address created;
        assembly ("memory-safe") {
            created := create2(0, add(initCode, 32), mload(initCode), salt)
        }
        if (created != wallet) revert DeploymentFailed();
        IWallet(wallet).initialize(config, _isSenderCreator(msg.sender) ? authorizer : address(0));
        emit WalletCreated(wallet, salt, configHash);
    }

    /// @notice The address of a wallet, deployed or not.
    /// @param saltHash keccak256 of the salt's UTF-8 bytes.
    /// @param custody Part of the address unless `legacy`.
    /// @param legacy The address depends only on `saltHash`.
    /// @return The address at which {createWallet} deploys it.
    function getAddress(bytes32 saltHash, uint256 custody, bool legacy) external view returns (address) {
        return _addressOf(_create2Salt(saltHash, custody, legacy));
    }

    /// @notice The signer of deployments. Storage slot 0.
    /// @return The address whose signature {createWallet} requires.
    function deployer() external view returns (address) {
        return _deployer;
    }

    /// @notice Replaces the deployer. Authorisations of the previous deployer become void. Only for the owner.
    /// @param deployer_ The new signer of deployments; not the zero address.
    function setDeployer(address deployer_) external onlyOwner {
        _setDeployer(deployer_);
    }

    function _setDeployer(address deployer_) private {
        if (deployer_ == address(0)) revert InvalidDeployer();
        emit DeployerChanged(_deployer, deployer_);
        _deployer = deployer_;
    }

    /// @dev Whether `caller` creates wallets for operations of an accepted EntryPoint.
    function _isSenderCreator(address caller) private view returns (bool) {
        return caller == SENDER_CREATOR_V07 || caller == SENDER_CREATOR_V08 || caller == SENDER_CREATOR_V06;
    }

    function _create2Salt(bytes32 saltHash, uint256 custody, bool legacy) private pure returns (bytes32) {
        return legacy ? saltHash : keccak256(abi.encode(saltHash, custody));
    }

    function _addressOf(bytes32 salt) private view returns (address) {
        return address(
            uint160(uint256(keccak256(abi.encodePacked(bytes1(0xff), address(this), salt, initCodeHash))))
        );
    }

    function _initCode(address beacon_) private pure returns (bytes memory) {
        return abi.encodePacked(type(WalletProxy).creationCode, abi.encode(beacon_, ""));
    }

    /// @dev The contract that `creator`'s constructor created first: keccak256(rlp([creator, 1])), nonce 1 by EIP-161.
    function _firstCreateOf(address creator) private pure returns (address) {
        return address(uint160(uint256(keccak256(abi.encodePacked(hex"d694", creator, hex"01")))));
    }
}
