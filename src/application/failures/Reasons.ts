import type * as Brand from "effect/Brand"
import * as Revert from "../../domain/abi/Revert.js"
import { catalogue, type RefusalCode } from "./Catalogue.js"

/** A message for the caller about a refusal: the catalogue's text, or a reason below with its values. */
export type Text = string & Brand.Brand<"castellan/Text">

const of =
  <C extends RefusalCode>(code: C) =>
  <T extends string>(text: T) => ({ code, text })

const funds = of("insufficient_funds")
const execution = of("execution_failed")
const bundler = of("bundler_refused")
const aggregator = of("aggregator_refused")
const unpaid = of("submission_unpaid")
const limit = of("submission_limit")
const sponsored = of("not_sponsored")
const paymaster = of("paymaster_refused")
const paymasterService = of("paymaster_unavailable")
const node = of("node_refused")
const fees = of("fees_above_cap")
const tooLarge = of("too_large_to_bundle")
const signer = of("signer_unavailable")
const events = of("too_many_events")
const nodeLimit = of("node_limit")
const paused = of("writes_paused")

/**
 * Messages that replace or extend the text of a code. `{name}` stands for a value. Free text only quotes others, in one
 * line of bounded length: `{reason}` of a contract's revert, `{message}` of a node or a service, `{problem}` with the
 * caller's own bytes.
 */
export const reasons = {
  walletFunds: funds("insufficient funds: wallet {wallet} lacks {missing} wei"),
  paymasterFunds: funds(
    "insufficient funds: paymaster {paymaster} lacks {missing} wei of deposit at the EntryPoint (AA31 paymaster deposit too low)"
  ),
  depositReserved: funds(
    "insufficient funds: the deposit of paymaster {paymaster} lacks {missing} wei (AA31)"
  ),
  submitterFunds: funds("insufficient funds: the submitting EOA {submitter} lacks {missing} wei"),
  signerFunds: funds("insufficient funds: {signer} lacks {missing} wei"),

  otherConfiguration: of("account_exists")("it exists with another configuration"),
  threshold: of("threshold_not_met")("threshold not met: have {have} of {threshold}"),
  dependency: of("dependency_failed")("dependency failed: operation {operation}"),
  invalidSignature: of("invalid_signature")("invalid signature: {problem}"),
  unexpectedSignature: of("invalid_signature")("invalid signature: {problem}; expected over {expected}"),
  refusedByWallet: of("invalid_signature")(
    "wallet {wallet} refuses the signature: its configuration changed meanwhile, or the chain verifies otherwise; send the request again"
  ),
  describeWallet: of("wallet_not_deployed")(
    "wallet not deployed: create it first, or describe it in account, as for /create"
  ),
  nonceOrder: of("invalid_nonce")("op nonce out of order: the next sequence of its key is {expected}"),
  configuration: of("configuration_changed")(
    "the wallet's configuration has changed: the nonce of the operation names configuration {named}, in force is {current}; estimate the operation again"
  ),

  noContract: of("no_contract")(
    "no contract at {address} on chain {chain}: a call with data would do nothing there; check the address and the chain"
  ),
  reverted: execution("{reason}"),
  refusedBeforeSending: execution("{text}: {problem}"),
  notIncluded: execution(
    "operation not included: {tries} transactions that carried only this operation reverted or lost their nonce"
  ),
  nonceBlocked: execution(
    "operation not included: its nonce follows that of an earlier operation of the wallet, which failed"
  ),

  bundlerRefused: bundler("the bundler refused the operation: {message}"),
  aggregatorReverted: aggregator("the aggregator refused the {field}: {reason}"),
  aggregatorShape: aggregator("the aggregator refused the {field}: its answer is not abi.encode(bytes)"),
  aggregatorLength: aggregator(
    "the aggregator refused the {field}: it gave {given} bytes, expected at most {most}"
  ),

  foreignSetting: unpaid(
    "op does not pay for its submission: {setting} is not one of the account's network profile"
  ),
  nothingPinned: unpaid(
    "op does not pay for its submission: the operator has pinned no wallet implementation for this chain"
  ),
  foreignPaymaster: unpaid("op does not pay for its submission: paymaster {paymaster} is not the operator's"),
  maxFeePerGas: unpaid("op does not pay for its submission: maxFeePerGas {given} is below {least}"),
  maxPriorityFeePerGas: unpaid(
    "op does not pay for its submission: maxPriorityFeePerGas {given} is below {least}"
  ),
  preVerificationGas: unpaid(
    "op does not pay for its submission: preVerificationGas {given} is below {least}"
  ),
  notMeasured: unpaid(
    "op does not pay for its submission: the operator's node cannot simulate the ops' payment"
  ),
  chargedLess: unpaid(
    "op does not pay for its submission: the transaction takes {used} gas, and the ops are charged for {charged}"
  ),
  tooManyInFlight: limit("too much is submitted for this account: {count} of its ops are under way"),
  dailyLoss: limit("too much is submitted for this account: it may cost the service {wei} wei in one day"),

  sponsorBudget: of("sponsorship_exhausted")(
    "sponsorship budget exhausted: the operation may cost {wei} wei, and {available} are left for today"
  ),
  sponsorData: sponsored("paymasterAndData: {problem}"),
  sponsorBound: sponsored(
    "the sponsorship names its submitter, and a remote bundler submits; estimate the operation again"
  ),
  sponsorUnbound: sponsored(
    "the sponsorship names no submitter, which only remote bundlers accept; estimate the operation again"
  ),
  sponsorGas: sponsored("the operation's gas limits are above the operator's bound"),
  sponsorTime: sponsored("sponsorship duration differs from the configured one"),

  paymasterRefused: paymaster("the paymaster's service refused the operation: {message}"),
  otherPaymaster: paymaster("the paymaster's service answered for paymaster {paymaster}"),
  paymasterData: paymaster("the answer of the paymaster's service: {problem}"),
  paymasterLonger: paymaster("the paymaster's service gave {given} bytes of data after a stub of {stub}"),
  paymasterDearer: paymaster("the paymaster's service raised its gas limits after its stub"),
  paymasterSilent: paymasterService("the paymaster's service did not answer: {message}"),

  nodeAnswered: node("{origin} answered: {message}"),
  nodeUnavailable: node("the node is unavailable: {message}"),
  operatorNodeUnread: node("the operator's node is currently unavailable"),
  operatorNodeOfOtherChain: node("the operator's node serves another chain"),
  operatorNodeWithoutBlock: node("the operator's node has no latest block"),
  nodeWithoutBlock: node("the node has no latest block"),
  nodeWithoutDeposit: node("the node did not return the paymaster's deposit"),
  nodeWithoutOverrides: node("the node cannot simulate with state overrides: {problem}"),
  nodeWithoutSimulation: node(
    "service submission requires eth_simulateV1, which the operator's node lacks: name a signer of the account, if the custody has one"
  ),
  nodeOfOtherChain: node("the node serves chain {chain} now, and served {expected} before"),
  noL1Oracle: node("the chain has no GasPriceOracle at {oracle}"),
  senselessL1Fee: node("the node asks {fee} wei for layer 1 at {price} wei per gas"),

  gasPrice: fees("the chain asks for {needed} wei a gas unit; the cap is {cap}"),
  replacementPrice: fees("nonce {nonce} needs {needed} wei a gas unit; the cap is {cap}"),
  l1Fee: fees("layer 1 asks for {fee} wei; a transaction may cost at most {cap}"),

  dependentGas: tooLarge(
    "the operations that depend on each other need more gas than one transaction may have"
  ),
  simulationGas: tooLarge(
    "the operations of this request need more gas than the node simulates in one call: split the request"
  ),
  transactionGas: tooLarge("the transaction needs {gas} gas; the cap is {cap}"),

  signerSilent: signer("the key provider did not answer"),
  systemKeyMissing: signer(
    "the operator has configured no system key for this: ask the operator, or name a signer of the account where the request takes one"
  ),
  signerRefused: signer("the key provider refused to sign"),
  notReplaceable: signer("the transaction with nonce {nonce} cannot be replaced: ask the operator"),
  notSigned: signer("{problem}"),

  delayed: of("outcome_unknown")("delayed: {message}"),

  creationCode: of("internal_application_error")("{problem}"),
  registryFull: of("registry_full")("{problem}"),
  policy: of("policy_refused")("{problem}"),
  hookRefused: of("policy_refused")("refused by a decision hook: {reason}"),
  hookSilent: of("decision_unavailable")("no decision: {problem}"),
  accountPaused: paused("the operator has paused the account"),
  chainPaused: paused("the operator has paused writes on chain {chain}"),
  signerPaused: paused("the operator has paused writes by {signer}"),

  reorganised: of("chain_reorganised")("blocks {from} to {to} changed during each of {readings} readings"),
  eventValues: events(
    "the event at log {log} of block {block} holds more than {values} values, or all up to there more than {all}: ask for fewer blocks, or name contracts or fields"
  ),
  eventCount: events(
    "blocks {from} to {to} hold more than {count} such events: ask for fewer blocks, or name contracts or fields"
  ),
  eventBytes: events(
    "blocks {from} to {to} hold more than {bytes} bytes of such events: ask for fewer blocks, or name contracts or fields"
  ),
  eventAnswer: events(
    "a block of {from} to {to} holds more events than one query reads: name contracts or fields"
  ),
  blocksAtATime: nodeLimit(
    "{origin} takes about {span} blocks at a time, and blocks {from} to {to} would take more than {asks} questions: ask for at most {most} blocks, or use another node"
  ),
  slowNode: nodeLimit(
    "{origin} did not answer for blocks {from} to {to} within {seconds} seconds: ask for fewer blocks"
  )
} as const satisfies Record<string, { readonly code: RefusalCode; readonly text: string }>

type Reasons = typeof reasons

/** The names in braces of a message. */
type Names<T extends string> = T extends `${string}{${infer Name}}${infer Rest}` ? Name | Names<Rest> : never

type Values<R extends keyof Reasons> = Readonly<Record<Names<Reasons[R]["text"]>, string | number | bigint>>

/** Most characters of one value. */
const longest = 1_024

/** The message of a reason, with each value in one line. */
export const text = <R extends keyof Reasons>(
  reason: R,
  ...[values]: Names<Reasons[R]["text"]> extends never ? [] : [Values<R>]
): Text => {
  const known = new Map<string, string | number | bigint>(Object.entries(values ?? {}))
  return reasons[reason].text.replace(/\{([a-z0-9]+)\}/gi, (_, name: string) =>
    Revert.oneLine(String(known.get(name) ?? ""), longest)
  ) as Text
}

const shapes = Object.entries(reasons).map(([name, { text }]) => {
  const constants = text.split(/\{[a-z0-9]+\}/i)
  const pattern = constants.map((part) => part.replace(/[^a-z0-9 ]/gi, "\\$&")).join("[^]*")
  return { name, constant: constants.join("").length, pattern: new RegExp(`^${pattern}$`) }
})

/** Whether a message is of this reason; of several, the one with the most constant characters counts. */
export const is = (reason: keyof Reasons, text: string): boolean => {
  const fitting = shapes.filter(({ pattern }) => pattern.test(text))
  const most = Math.max(...fitting.map(({ constant }) => constant))
  return fitting.some(({ constant, name }) => name === reason && constant === most)
}

/** The text of a code. */
export const ofCode = (code: RefusalCode): Text => catalogue[code].text as string as Text

/** A message made here before: another failure's, or one from the journal. */
export const known = (text: string): Text => text as Text
