import type { RawLog } from "../evm/RawLog.js"
import type { Address } from "../primitives/Address.js"
import * as Hex from "../primitives/Hex.js"
import * as Keccak from "../primitives/Keccak.js"
import * as Words from "../primitives/Words.js"

/** The EntryPoint's record of one mined op. */
export interface Outcome {
  readonly userOpHash: Hex.Bytes32
  readonly sender: Address
  readonly nonce: bigint
  /** Whether the wallet's call (and the paymaster's postOp) went through. */
  readonly success: boolean
  /** Whether this op created its wallet. */
  readonly deployed: boolean
  /** Wei that the wallet or the paymaster paid. */
  readonly actualGasCost: bigint
  /** Gas units that were charged, preVerificationGas and penalty for unused gas included. */
  readonly actualGasUsed: bigint
  /**
   * Revert data of the failed call, or of the failed postOp (then `PostOpReverted(bytes)`, v0.7 and later); at most
   * 2048 bytes (the EntryPoint cuts). Null without a revert, or for a revert without data.
   */
  readonly revertData: Hex.Hex | null
  /**
   * The logs of the op's execution: logIndex from `first` to `last`, both included; `last` is its
   * UserOperationEvent. Logs of its validation and creation lie before the bundle's BeforeExecution.
   */
  readonly logs: { readonly first: number; readonly last: number }
}

/** Topic of `UserOperationEvent`; the second topic is the userOpHash. */
export const userOperationEvent = Keccak.hashText(
  "UserOperationEvent(bytes32,address,address,uint256,bool,uint256,uint256)"
)
/** Topic of `UserOperationRevertReason`; the second topic is the userOpHash. */
export const userOperationRevertReason = Keccak.hashText(
  "UserOperationRevertReason(bytes32,address,uint256,bytes)"
)
const postOpRevertReason = Keccak.hashText("PostOpRevertReason(bytes32,address,uint256,bytes)")
const accountDeployed = Keccak.hashText("AccountDeployed(bytes32,address,address,address)")
const beforeExecution = Keccak.hashText("BeforeExecution()")
const signatureAggregatorChanged = Keccak.hashText("SignatureAggregatorChanged(address)")

const outcomeTopics = new Set<string>([
  userOperationEvent,
  userOperationRevertReason,
  postOpRevertReason,
  accountDeployed,
  beforeExecution,
  signatureAggregatorChanged
])

/** Whether `parse` reads outcomes from a log with these topics, if it is the EntryPoint's. */
export const isOfOutcome = ([topic]: RawLog["topics"]): boolean =>
  topic !== undefined && outcomeTopics.has(topic)

/** Parsed outcomes of a list of logs, by EntryPoint: every request of a bundle reads all logs of the bundle. */
const parsed = new WeakMap<ReadonlyArray<RawLog>, Map<Address, ReadonlyMap<Hex.Bytes32, Outcome>>>()

/**
 * The outcomes of all ops in the logs of one transaction, by userOpHash, whatever the bundle and the sender. Only logs of
 * `entryPoint` count: a wallet or token can imitate the events but not their address. A log without the shape of its
 * event is skipped.
 *
 * An op's execution logs begin behind the last BeforeExecution, SignatureAggregatorChanged or UserOperationEvent of
 * the EntryPoint (ERC-4337, v0.6 to v0.8: ops are executed one after the other, and handleOps cannot be nested).
 */
export const parse = (
  entryPoint: Address,
  logs: ReadonlyArray<RawLog>
): ReadonlyMap<Hex.Bytes32, Outcome> => {
  const known = parsed.get(logs)
  const found = known?.get(entryPoint)
  if (found !== undefined) return found
  const outcomes = parseAll(entryPoint, logs)
  if (known === undefined) parsed.set(logs, new Map([[entryPoint, outcomes]]))
  else known.set(entryPoint, outcomes)
  return outcomes
}

const parseAll = (entryPoint: Address, logs: ReadonlyArray<RawLog>): ReadonlyMap<Hex.Bytes32, Outcome> => {
  const outcomes = new Map<Hex.Bytes32, Outcome>()
  const deployed = new Set<Hex.Bytes32>()
  const reverts = new Map<Hex.Bytes32, Hex.Hex>()
  let first: number | undefined
  for (const log of [...logs].sort((a, b) => a.logIndex - b.logIndex)) {
    first ??= log.logIndex
    if (log.address !== entryPoint) continue
    const [topic, userOpHash, senderWord] = log.topics
    if (topic === beforeExecution || topic === signatureAggregatorChanged) first = log.logIndex + 1
    if (userOpHash === undefined || senderWord === undefined) continue
    const data = Words.read(log.data)
    if (topic === accountDeployed) deployed.add(userOpHash)
    else if (topic === userOperationRevertReason || topic === postOpRevertReason)
      reverts.set(userOpHash, Words.readBytes(data, 32))
    else if (topic === userOperationEvent && log.topics.length === 4 && Hex.size(log.data) === 128) {
      const success = Words.readUint(data, 32) !== 0n
      outcomes.set(userOpHash, {
        userOpHash,
        sender: Words.readAddress(Words.read(senderWord), 0),
        nonce: Words.readUint(data, 0),
        success,
        deployed: deployed.has(userOpHash),
        actualGasCost: Words.readUint(data, 64),
        actualGasUsed: Words.readUint(data, 96),
        revertData: success ? null : (reverts.get(userOpHash) ?? null),
        logs: { first, last: log.logIndex }
      })
      first = log.logIndex + 1
    }
  }
  return outcomes
}

/**
 * The logs of a transaction that belong to these ops: all logs if it carries no other op. Otherwise the logs of these
 * ops' execution, and those of the validation before it that name the ops or their wallets.
 */
export const logsOf = (
  entryPoint: Address,
  logs: ReadonlyArray<RawLog>,
  userOpHashes: ReadonlySet<Hex.Bytes32>
): ReadonlyArray<RawLog> => {
  const outcomes = [...parse(entryPoint, logs).values()]
  const own = outcomes.filter(({ userOpHash }) => userOpHashes.has(userOpHash))
  if (own.length === outcomes.length) return logs
  const senders = new Set(own.map(({ sender }) => sender))
  const names = new Set<string>([
    ...userOpHashes,
    ...[...senders].map((sender) => `0x${Words.address(sender)}`)
  ])
  const executed = Math.min(...outcomes.map((outcome) => outcome.logs.first))
  return logs.filter(({ address, logIndex, topics }) =>
    logIndex < executed
      ? senders.has(address) || topics.some((topic) => names.has(topic))
      : own.some((outcome) => logIndex >= outcome.logs.first && logIndex <= outcome.logs.last)
  )
}

/** Result status of execute and its kin: 1 every op succeeded, 4 some did, 0 none did (or there was none). */
export const executeStatus = (outcomes: ReadonlyArray<boolean>): 0 | 1 | 4 => {
  if (!outcomes.includes(true)) return 0
  return outcomes.includes(false) ? 4 : 1
}

/** Outcome of one requested wallet; "existed": before this request, with the same configuration. */
export type Creation = "deployed" | "existed" | "failed"

/**
 * Result status of create: 1 every requested wallet was deployed by this request, 2 all existed already, 3 some
 * were deployed by it but not all, 0 none was (or none was requested).
 */
export const createStatus = (creations: ReadonlyArray<Creation>): 0 | 1 | 2 | 3 => {
  if (creations.length === 0) return 0
  if (creations.every((creation) => creation === "existed")) return 2
  if (!creations.includes("deployed")) return 0
  return creations.every((creation) => creation === "deployed") ? 1 : 3
}
