import type { FailureKind } from "./FailureKind.js"

/**
 * Every failure that the service can answer with: its stable code, kind, text, condition and remedy. The docs' error
 * reference is generated from this table, and only this table words errors.
 */
export interface Entry {
  readonly kind: FailureKind
  readonly text: string
  readonly when: string
  readonly remedy: string
}

const of =
  <K extends FailureKind>(kind: K) =>
  (text: string, when: string, remedy: string) => ({ kind, text, when, remedy })

const invalid = of("invalid")
const unauthorized = of("unauthorized")
const notFound = of("notFound")
const notAllowed = of("notAllowed")
const refused = of("refused")
const unknown = of("unknown")
const limited = of("limited")
const internal = of("internal")
const unavailable = of("unavailable")

/** Every code with its message, its cause and its remedy. Codes are stable; messages are for people. */
export const catalogue = {
  invalid_request: invalid(
    "invalid request",
    "A field is missing, of the wrong type, out of range, or contradicts another one.",
    "Fix the fields in `details`."
  ),
  unknown_field: invalid(
    "unknown field",
    "The body has a field that the endpoint does not know.",
    "Remove it, or use the name that details suggests."
  ),
  invalid_json: invalid(
    "invalid JSON",
    "The body is not one JSON document in valid UTF-8.",
    "Send a JSON object in UTF-8."
  ),
  invalid_content_type: invalid(
    "invalid content type",
    "The Content-Type header is not application/json.",
    "Send the body as application/json."
  ),
  body_too_large: invalid(
    "request body too large",
    "The body is longer than the service takes.",
    "Split the request into smaller ones."
  ),
  idempotency_key_reused: invalid(
    "idempotency key reused",
    "The Idempotency-Key was used before with another body.",
    "Take a new key for a new request; send the same bytes to repeat one."
  ),
  version_mismatch: invalid(
    "version mismatch",
    "If-Match names a version that is not the current one: another request changed it meanwhile.",
    "Read the current version, apply the change to it, and send its number."
  ),
  too_many_webhooks: invalid(
    "too many webhooks",
    "The account has reached its maximum of webhooks.",
    "Delete an unused webhook."
  ),
  too_many_watches: invalid(
    "too many watches",
    "The account has reached its maximum of watches, or of watches without a value of an indexed field, of watches on its own nodes, or of long watches (details names the limit).",
    "Remove an unused watch, or give an indexed field a value."
  ),
  invalid_salt_format: invalid(
    "invalid salt format",
    "A salt is not 1 to 256 UTF-8 bytes of well-formed NFC text without control characters or outer white space.",
    "Normalise the salt to NFC and remove what does not belong."
  ),
  salt_required: invalid(
    "salt is required",
    "An account of /create has neither salt nor wallet, or only a wallet that is not deployed.",
    "Send the wallet's salt: castellan cannot derive the wallet's code from its address."
  ),
  invalid_wallet_custody_type: invalid(
    "invalid wallet custody type",
    "walletCustody is not a custody value, or the endpoint does not accept the value.",
    "Use 1 to 5; 0 only where the interface allows it."
  ),
  invalid_function_signature: invalid(
    "invalid function signature",
    "funcSignature is not of the form name(type,type).",
    "Write the signature as in Solidity, for example transfer(address,uint256)."
  ),
  invalid_function_parameter: invalid(
    "invalid function parameter",
    "An element of funcParams does not fit its type, or their number differs from the signature's.",
    "Send each value as a string that fits the type named in the text."
  ),
  invalid_rpc: invalid(
    "invalid rpc",
    "The rpc URL is malformed, forbidden, redirects, cannot be connected to, or is not an EVM JSON-RPC. A node that cannot answer now is node_unavailable.",
    "Check the URL and that the service can reach it."
  ),
  unsupported_chain: invalid(
    "unsupported chain id",
    "The node serves a chain for which the operator has no network profile.",
    "Use an RPC URL of a supported chain."
  ),
  unsupported_entry_point: invalid(
    "unsupported entry point",
    "The network profile does not accept settings.entryPoint.",
    "Use an EntryPoint that the operator lists for the chain."
  ),
  factory_not_allowed: invalid(
    "factory not allowed",
    "settings.factory is not the one of this account's network profile.",
    "Leave settings.factory out, or send the one of your own network profile."
  ),
  validator_mismatch: invalid(
    "validator mismatch",
    "settings.validator is not the one that the wallet implementation reports.",
    "Leave settings.validator out, or send the right one."
  ),
  window_over: invalid(
    "validity window over",
    "validUnitl has passed, by the timestamp of the chain's latest block.",
    "Send a later validUnitl, or 0."
  ),
  custody_mismatch: invalid(
    "custody mismatch",
    "walletCustody is neither 0 nor the custody of the wallet on the chain.",
    "Send the wallet's own custody, or 0."
  ),
  hash_mismatch: invalid(
    "userOpHash mismatch",
    "userOpHash is not the hash of encodedUserOp at this EntryPoint and chain.",
    "Send the pair exactly as /estimateGas returned it."
  ),
  event_not_registered: invalid(
    "event not registered",
    "No registered, built-in or useABI event has this name or definition.",
    "Register the event with /addEvent, or send its definition in useABI."
  ),
  block_range_too_wide: invalid(
    "block range too wide",
    "fromBlock and toBlock are further apart than one request may span.",
    "Ask for the blocks in several requests, as details says."
  ),
  operator_rpc_missing: invalid(
    "no operator RPC for this chain",
    "The request needs a system key, or names no rpc, and the operator has configured no RPC for the chain.",
    "Send an rpc where no system key is needed, or ask the operator to configure a node for the chain."
  ),
  unauthorized: unauthorized(
    "invalid API key",
    "The X-API-Key header is missing, unknown or revoked.",
    "Send a valid key in the X-API-Key header."
  ),
  scope_missing: unauthorized(
    "API key lacks the scope",
    "The key lacks the endpoint's scope.",
    "Use a key with that scope."
  ),
  account_paused: unauthorized("account paused", "The operator has paused the account.", "Ask the operator."),
  client_id_incorrect: unauthorized(
    "invalid client ID: client ID incorrect",
    "No signer of this account has this clientId.",
    "Check signer.clientId."
  ),
  version_not_found: unauthorized(
    "version not found: HSM version does not exist",
    "The clientId has no key of this versionId.",
    "Check signer.versionId."
  ),
  asset_not_supported: unauthorized(
    "asset not supported: MPC asset unavailable",
    "The clientId has no key for this assetId.",
    "Check signer.assetId."
  ),
  insufficient_funds: refused(
    "insufficient funds",
    "A wallet, or the submitting EOA, cannot pay for gas and value. Nothing was sent.",
    "Fund the addresses in details by the amounts named there."
  ),
  account_exists: refused(
    "account already exists",
    "A wallet of this salt and custody exists with another configuration. Nothing was sent.",
    "Use the wallet as it is, or another salt."
  ),
  deployment_pending: refused(
    "another deployment of this wallet is pending",
    "A deployment of this address with another configuration is authorised and has not expired.",
    "Wait for its outcome, or send the same configuration."
  ),
  registry_full: refused(
    "the registry is full",
    "The account has reached its maximum of registered events and errors, or of their total length.",
    "Send further definitions in useABI."
  ),
  wallet_not_deployed: refused(
    "wallet not deployed",
    "There is no code at the wallet's address.",
    "Create the wallet first."
  ),
  wallet_not_supported: refused(
    "wallet not supported",
    "The code at the address is not a wallet of the beacon.",
    "Use a wallet that this service's factory deployed."
  ),
  implementation_changed: refused(
    "wallet implementation changed",
    "The beacon's implementation is not the one that the operator pinned.",
    "Wait until the operator has confirmed the new implementation."
  ),
  passkeys_forgeable: refused(
    "the chain takes forged passkey signatures",
    "The code at 0x100, where wallets verify P-256, accepts wrong signatures: any signature could act for a wallet with passkeys (custody 2, 4 or 5). Nothing was sent.",
    "Use a chain with the P-256 precompile of EIP-7951, or with nothing at 0x100, or wallets without passkeys (custody 1 and 3)."
  ),
  threshold_not_met: refused(
    "threshold not met",
    "The signatures at hand do not reach the wallet's threshold.",
    "Name owners of the wallet as settings.signer and settings.cosigners, or collect signatures: /estimateGas, then /executeEncoded."
  ),
  signer_without_authority: refused(
    "signer has no authority over this wallet",
    "Only passkeys validate the wallet's ops.",
    "Sign with one of the wallet's passkeys: /passkeyHash, then /executePasskey."
  ),
  not_valid_yet: refused(
    "operation not valid yet",
    "validAfter is later than the timestamp of the chain's latest block. Nothing was sent.",
    "Send the operation once its window has begun, or with Prefer: respond-async. Times are in seconds."
  ),
  window_passed: refused(
    "validity window over before it was executed",
    "validUnitl of an accepted operation passed, by the timestamp of the chain's latest block, before it was executed; it never will be. Transactions that were sent for it, which the request's txHashes name, came too late.",
    "To execute it later, send it with a later validUnitl under a new Idempotency-Key."
  ),
  dependency_failed: refused(
    "dependency failed",
    "The operation that dependsOn names did not succeed, so this one was not executed.",
    "Read the error of the operation that the text names."
  ),
  invalid_signature: refused(
    "invalid signature",
    "A signature does not prove the wallet's consent to the op.",
    "Sign userOpHash or signingHash as details says."
  ),
  submission_unpaid: refused(
    "op does not pay for its submission",
    "The request names no signer, so the service EOA would submit. The service EOA submits only ops that repay its cost, for wallets of the account's own profile. Nothing was sent.",
    "Estimate again and send the op unchanged, or name settings.signer, whose EOA submits then."
  ),
  submission_limit: refused(
    "too much is submitted for this account",
    "The service EOA's losses for the account today, or its ops in flight for the account, leave no room for this op. Nothing was sent.",
    "Wait until earlier ops are mined, or name settings.signer, whose EOA submits then."
  ),
  paymaster_refused: refused(
    "paymaster refused the operation",
    "The service of the paymaster that was named does not pay for the operation; the text has its own words.",
    "Ask the paymaster's operator, or leave settings.paymaster out."
  ),
  paymaster_unavailable: refused(
    "paymaster service unavailable",
    "The paymaster's service did not answer, or its answer does not follow ERC-7677. Nothing was sent.",
    "Repeat the request later, or leave settings.paymaster out."
  ),
  sponsorship_exhausted: refused(
    "sponsorship budget exhausted",
    "The operation may cost more than the remainder of the account's sponsorship budget of the day on this chain.",
    "Wait for operations under way or for the next UTC day, have the operator raise the budget, or let wallets pay."
  ),
  sponsorship_over: refused(
    "sponsorship is over",
    "The operation was prepared more than ten minutes ago. Its sponsorship has expired.",
    "Estimate the operation again and send what comes out in time."
  ),
  not_sponsored: refused(
    "operation is not sponsored",
    "The operation names the operator's paymaster and differs from the operations that the service built for this account.",
    "Estimate the operation with settings.paymaster and send it back unchanged."
  ),
  invalid_nonce: refused(
    "op nonce already used",
    "The op's nonce is consumed, or not the next one of its key.",
    "Estimate again and send the new op."
  ),
  configuration_changed: refused(
    "wallet configuration changed",
    "The op was estimated for a configuration of its wallet that has been replaced since: its nonce names that one, so that no signature of it counts any more.",
    "Estimate again, and have the new op signed by the validators that the wallet has now."
  ),
  no_contract: refused(
    "no contract at the called address",
    "The call has data, and there is no code at its address on this chain: it would do nothing, and succeed. Nothing was sent.",
    "Check the address and the chain. Use funcSignature receive() to send only value. Put an operation that creates the contract first, or name it in dependsOn."
  ),
  execution_failed: refused(
    "execution failed",
    "No element of the request can succeed; returnData says why for each. Nothing was sent.",
    "Read the error of each element."
  ),
  too_large_to_bundle: refused(
    "operation exceeds the gas bound",
    "One operation needs more gas than a transaction may have.",
    "Split the operation."
  ),
  fees_above_cap: refused(
    "network fees above the operator's cap",
    "The chain's gas price, its least tip, or its fee on layer 1 is above the operator's absolute cap. Nothing was sent.",
    "Try later, or ask the operator to raise the cap."
  ),
  wallet_busy: refused(
    "wallet busy",
    "All nonce keys or all funds of the wallet are taken by writes under way. Nothing was sent.",
    "Try again when they are mined."
  ),
  signer_unavailable: refused(
    "signer unavailable",
    "The custody provider did not sign, or the operator has configured no key for it. Nothing was sent.",
    "Try again later, or do what details say."
  ),
  bundler_refused: refused(
    "the bundler refused the operation",
    "The bundler rejected the operation. Copies that it holds have expired or never expire.",
    "See details for its reason."
  ),
  aggregator_refused: refused(
    "the aggregator refused the signature",
    "settings.aggregator does not verify the operation's signature. Nothing was sent.",
    "Name the aggregator of the wallet, and sign as it asks."
  ),
  outcome_unknown: unknown(
    "transaction not confirmed in time",
    "The transaction was sent and is not mined yet, or a bundler that refused an operation holds its signed copy until it expires. The service keeps watching it.",
    "Ask GET /requests/{requestId}, or repeat the request with the same Idempotency-Key; never send it anew."
  ),
  request_cancelled: refused(
    "request cancelled",
    "The caller or the operator cancelled the request before this operation was signed. Nothing was sent.",
    "To execute it later, send a new request under a new Idempotency-Key."
  ),
  request_dropped: refused(
    "request dropped by the operator",
    "The request was held, because a transaction that the service's database lacks may have executed it, for example after a restored backup. The operator decided not to execute it.",
    "Look on the chain whether it was done. Make a new request, under a new Idempotency-Key, only if it was not."
  ),
  request_expired: refused(
    "request expired",
    "The request was accepted, and nothing was signed within the network's requestExpiryMillis. Nothing was sent.",
    "Find out what held it up (the signer, the node, the wallet's or the signer's other work), and make a new request."
  ),
  too_many_events: refused(
    "too many events",
    "More events match than one answer may hold.",
    "Ask for fewer blocks, or name contracts or fields."
  ),
  node_limit: refused(
    "the node's limits are too narrow for this block range",
    "The node takes so few blocks at a time, or so long, that reading the range is not possible in one request.",
    "Ask for fewer blocks, as details says, or use another node."
  ),
  chain_reorganised: refused(
    "the chain was reorganised while it was read",
    "The last block of the range changed during every attempt to read it.",
    "Try again, or end the range some blocks below the latest one."
  ),
  policy_refused: refused(
    "refused by a spending rule",
    "A policy of the key, a signer or the wallet does not allow the operation or the signature, or its limit has no room left. details names subject, version and rule or limit; numbers only of the account's own policies. Or a decision hook refuses it, with its reason.",
    "Change the operation, wait for the limit's next window, or change the policy."
  ),
  writes_paused: refused(
    "writes are paused",
    "The operator has paused writes by this signer or on this chain. Nothing was sent.",
    "Ask the operator, or try again after the operator has resumed writes. Work accepted before continues."
  ),
  decision_unavailable: refused(
    "no decision",
    "A decision hook did not answer in time, or gave no valid answer. Nothing was sent or signed.",
    "Check the receiver of the hook, and try again."
  ),
  node_refused: refused(
    "the node refused the request",
    "The chain's node answered a needed call with an error other than an outage, or with an inconsistent answer. Nothing was sent.",
    "Read details; try another RPC."
  ),
  internal_application_error: refused(
    "internal application error",
    "beaconAdminCreationCode cannot be used: not hex, empty, or longer than 48 KiB.",
    "Send the creation code that the operator gave you."
  ),
  rate_limited: limited(
    "rate limit exceeded",
    "The account has used its requests of this minute or hour, or has reached its maximum of unfinished work (details says so), or the address has used its requests without a valid key.",
    "Wait for the seconds in Retry-After."
  ),
  request_not_found: notFound(
    "request not found",
    "The account has no accepted and no recently refused request of this id.",
    "Accepted requests are kept for 30 days, and the latest refusals."
  ),
  webhook_not_found: notFound(
    "webhook not found",
    "The account has no webhook of this id.",
    "List webhooks with GET /webhooks."
  ),
  policy_not_found: notFound(
    "policy not found",
    "The account has set no policy or list for this subject, or none of this version.",
    "List policies with GET /policies."
  ),
  watch_not_found: notFound(
    "watch not found",
    "The account has no watch of this id.",
    "List watches with GET /watches. A watch ends with its removal or with its webhook's."
  ),
  not_found: notFound("not found", "No endpoint has this path.", "See /docs for the endpoints."),
  method_not_allowed: notAllowed(
    "method not allowed",
    "The endpoint does not take this method.",
    "Use the method in the Allow header."
  ),
  internal_error: internal(
    "internal error",
    "The service failed; it has logged the requestId.",
    "Report the requestId to the operator."
  ),
  unavailable: unavailable(
    "temporarily unavailable",
    "A store that the service needs, or the counter of rate limits, does not answer; or the request did not arrive in time.",
    "Try again after Retry-After."
  ),
  node_unavailable: unavailable(
    "node unavailable",
    "The operator's node does not answer, or a node, the rpc's included, cannot answer now: HTTP 5xx, a rate limit, a JSON-RPC error of an outage, a block that it lacks. Nothing was sent. Accepted work waits for the node.",
    "Try again after Retry-After, a write with the same Idempotency-Key and the same bytes."
  ),
  overloaded: unavailable(
    "overloaded",
    "Too many requests are under way, or too much accepted work waits for its outcome.",
    "Try again after Retry-After."
  ),
  shutting_down: unavailable("shutting down", "The process is about to stop.", "Try again after Retry-After.")
} as const

export type Catalogue = typeof catalogue
/** A code of the catalogue, for example `insufficient_funds`. */
export type Code = keyof Catalogue

/** The codes of failures of this kind. */
export type CodeOf<K extends FailureKind> = {
  [C in Code]: Catalogue[C]["kind"] extends K ? C : never
}[Code]

/** The codes for an element, or a whole request, that was well-formed and permitted. */
export type RefusalCode = CodeOf<"refused" | "unknown">

/** Annotation of a request schema: the code of the answer when the value does not fit. Default: `invalid_request`. */
export const codeAnnotation = "castellan/code"
