import * as Result from "effect/Result"
import * as ErrorDefinition from "./ErrorDefinition.js"
import * as Event from "./Event.js"
import * as Log from "./Log.js"
import * as Revert from "./Revert.js"

/**
 * The events and errors that everyone gets decoded without registering them. Where two definitions fit the
 * same bytes (`ApprovalForAll`), the first one decodes.
 */

/** The canonical text of every built-in event. */
export const eventTexts: ReadonlyArray<string> = [
  // ERC-20
  "event Transfer(address indexed from, address indexed to, uint256 value)",
  "event Approval(address indexed owner, address indexed spender, uint256 value)",
  // ERC-721
  "event Transfer(address indexed from, address indexed to, uint256 indexed tokenId)",
  "event Approval(address indexed owner, address indexed approved, uint256 indexed tokenId)",
  "event ApprovalForAll(address indexed owner, address indexed operator, bool approved)",
  // ERC-1155
  "event TransferSingle(address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value)",
  "event TransferBatch(address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values)",
  "event ApprovalForAll(address indexed account, address indexed operator, bool approved)",
  "event URI(string value, uint256 indexed id)",
  // ERC-4626
  "event Deposit(address indexed sender, address indexed owner, uint256 assets, uint256 shares)",
  "event Withdraw(address indexed sender, address indexed receiver, address indexed owner, uint256 assets, uint256 shares)",
  // EntryPoint v0.6, v0.7, v0.8
  "event UserOperationEvent(bytes32 indexed userOpHash, address indexed sender, address indexed paymaster, uint256 nonce, bool success, uint256 actualGasCost, uint256 actualGasUsed)",
  "event AccountDeployed(bytes32 indexed userOpHash, address indexed sender, address factory, address paymaster)",
  "event UserOperationRevertReason(bytes32 indexed userOpHash, address indexed sender, uint256 nonce, bytes revertReason)",
  "event PostOpRevertReason(bytes32 indexed userOpHash, address indexed sender, uint256 nonce, bytes revertReason)",
  "event UserOperationPrefundTooLow(bytes32 indexed userOpHash, address indexed sender, uint256 nonce)",
  "event BeforeExecution()",
  "event SignatureAggregatorChanged(address indexed aggregator)",
  "event Deposited(address indexed account, uint256 totalDeposit)",
  "event Withdrawn(address indexed account, address withdrawAddress, uint256 amount)",
  "event StakeLocked(address indexed account, uint256 totalStaked, uint256 unstakeDelaySec)",
  "event StakeUnlocked(address indexed account, uint256 withdrawTime)",
  "event StakeWithdrawn(address indexed account, address withdrawAddress, uint256 amount)",
  // ERC-5267, ERC-1967, Ownable, Initializable
  "event EIP712DomainChanged()",
  "event Upgraded(address indexed implementation)",
  "event BeaconUpgraded(address indexed beacon)",
  "event OwnershipTransferred(address indexed previousOwner, address indexed newOwner)",
  "event OwnershipTransferStarted(address indexed previousOwner, address indexed newOwner)",
  "event Initialized(uint64 version)",
  // the reference suite
  "event WalletCreated(address indexed wallet, bytes32 indexed create2Salt, bytes32 configHash)",
  "event DeployerChanged(address indexed previous, address indexed current)",
  "event ConfigChanged(bytes32 configHash, uint64 configNonce)",
  "event RecoveryChanged(address indexed recovery, uint48 delay)",
  "event RecoveryStarted(bytes32 configHash, uint48 readyAt)",
  "event RecoveryCancelled(bytes32 configHash)"
]

/** The canonical text of every built-in error. */
export const errorTexts: ReadonlyArray<string> = [
  // EntryPoint v0.6, v0.7, v0.8
  "error FailedOp(uint256 opIndex, string reason)",
  "error FailedOpWithRevert(uint256 opIndex, string reason, bytes inner)",
  "error PostOpReverted(bytes returnData)",
  "error SignatureValidationFailed(address aggregator)",
  "error SenderAddressResult(address sender)",
  "error DelegateAndRevert(bool success, bytes ret)",
  "error ExecutionResult(uint256 preOpGas, uint256 paid, uint48 validAfter, uint48 validUntil, bool targetSuccess, bytes targetResult)",
  "error ValidationResult((uint256 preOpGas, uint256 prefund, bool sigFailed, uint48 validAfter, uint48 validUntil, bytes paymasterContext) returnInfo, (uint256 stake, uint256 unstakeDelaySec) senderInfo, (uint256 stake, uint256 unstakeDelaySec) factoryInfo, (uint256 stake, uint256 unstakeDelaySec) paymasterInfo)",
  "error ValidationResultWithAggregation((uint256 preOpGas, uint256 prefund, bool sigFailed, uint48 validAfter, uint48 validUntil, bytes paymasterContext) returnInfo, (uint256 stake, uint256 unstakeDelaySec) senderInfo, (uint256 stake, uint256 unstakeDelaySec) factoryInfo, (uint256 stake, uint256 unstakeDelaySec) paymasterInfo, (address aggregator, (uint256 stake, uint256 unstakeDelaySec) stakeInfo) aggregatorInfo)",
  "error ReentrancyGuardReentrantCall()",
  "error InvalidShortString()",
  "error StringTooLong(string str)",
  // batches of wallets after the EntryPoint's reference account
  "error ExecuteError(uint256 index, bytes error)",
  // the reference suite
  "error InvalidBeacon(address beacon)",
  "error NonPayable()",
  "error InvalidAuthorization()",
  "error InvalidDeadline(uint48 deadline)",
  "error InvalidDeployer()",
  "error DeploymentFailed()",
  "error WalletExists(address wallet, bytes32 configHash)",
  "error CustodyMismatch(uint256 custody, uint8 configCustody)",
  "error AlreadyInitialized()",
  "error DelegatedAccount()",
  "error OnlySelf(address caller)",
  "error Malformed()",
  "error UnknownEntryPoint(address entryPoint)",
  "error AccountUnauthorized(address sender)",
  "error CustodyIsFixed(uint8 custody)",
  "error InvalidCustody(uint8 custody)",
  "error InvalidOwner(address owner)",
  "error InvalidOwnerCount(uint256 count)",
  "error InvalidPasskey(bytes32 x, bytes32 y)",
  "error InvalidPasskeyCount(uint256 count)",
  "error InvalidThreshold(uint8 threshold)",
  "error InvalidRecoveryDelay(uint48 delay)",
  "error NoSuchRecovery(bytes32 configHash)",
  "error OnlyRecovery(address caller)",
  "error RecoveryNotReady(uint48 readyAt)",
  "error DependencyFailed(bytes32 key)",
  "error BeaconInvalidImplementation(address implementation)",
  "error OwnershipCannotBeRenounced()",
  "error OwnableInvalidOwner(address owner)",
  "error OwnableUnauthorizedAccount(address account)",
  // ERC-6093
  "error ERC20InsufficientBalance(address sender, uint256 balance, uint256 needed)",
  "error ERC20InvalidSender(address sender)",
  "error ERC20InvalidReceiver(address receiver)",
  "error ERC20InsufficientAllowance(address spender, uint256 allowance, uint256 needed)",
  "error ERC20InvalidApprover(address approver)",
  "error ERC20InvalidSpender(address spender)",
  "error ERC721InvalidOwner(address owner)",
  "error ERC721NonexistentToken(uint256 tokenId)",
  "error ERC721IncorrectOwner(address sender, uint256 tokenId, address owner)",
  "error ERC721InvalidSender(address sender)",
  "error ERC721InvalidReceiver(address receiver)",
  "error ERC721InsufficientApproval(address operator, uint256 tokenId)",
  "error ERC721InvalidApprover(address approver)",
  "error ERC721InvalidOperator(address operator)",
  "error ERC1155InsufficientBalance(address sender, uint256 balance, uint256 needed, uint256 tokenId)",
  "error ERC1155InvalidSender(address sender)",
  "error ERC1155InvalidReceiver(address receiver)",
  "error ERC1155MissingApprovalForAll(address operator, address owner)",
  "error ERC1155InvalidApprover(address approver)",
  "error ERC1155InvalidOperator(address operator)",
  "error ERC1155InvalidArrayLength(uint256 idsLength, uint256 valuesLength)",
  // OpenZeppelin's vaults, permits, guards and call helpers
  "error ERC4626ExceededMaxDeposit(address receiver, uint256 assets, uint256 max)",
  "error ERC4626ExceededMaxMint(address receiver, uint256 shares, uint256 max)",
  "error ERC4626ExceededMaxWithdraw(address owner, uint256 assets, uint256 max)",
  "error ERC4626ExceededMaxRedeem(address owner, uint256 shares, uint256 max)",
  "error ERC2612ExpiredSignature(uint256 deadline)",
  "error ERC2612InvalidSigner(address signer, address owner)",
  "error SafeERC20FailedOperation(address token)",
  "error AccessControlUnauthorizedAccount(address account, bytes32 neededRole)",
  "error EnforcedPause()",
  "error ExpectedPause()",
  "error InvalidInitialization()",
  "error NotInitializing()",
  "error AddressEmptyCode(address target)",
  "error FailedCall()",
  "error InsufficientBalance(uint256 balance, uint256 needed)",
  "error ECDSAInvalidSignature()",
  "error ECDSAInvalidSignatureLength(uint256 length)",
  "error ECDSAInvalidSignatureS(bytes32 s)"
]

/** Every built-in event: ERC-20, ERC-721, ERC-1155, ERC-4626, EntryPoint, the reference suite. */
export const events: ReadonlyArray<Event.EventDefinition> = eventTexts.flatMap((text) =>
  Result.match(Event.parse(text), { onFailure: () => [], onSuccess: (definition) => [definition] })
)

/** Every built-in error: EntryPoint, the reference suite, ERC-6093, OpenZeppelin's common ones. */
export const errors: ReadonlyArray<ErrorDefinition.ErrorDefinition> = errorTexts.flatMap((text) =>
  Result.match(ErrorDefinition.parse(text), { onFailure: () => [], onSuccess: (definition) => [definition] })
)

/** The built-in events, indexed once. */
export const eventIndex: Log.Index = Log.index(events)

/** The built-in errors, indexed once. */
export const errorIndex: Revert.Index = Revert.index(errors)
