import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import * as Ledger from "../../../domain/wallet/Ledger.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import { type Connection, refusal } from "../../chain/Connection.js"
import { dependencyFailed, type ElementFailure } from "../../failures/Elements.js"
import { type Failure, invalidAt } from "../../failures/Failure.js"
import type { Operation } from "../Operation.js"
import type { Prepared } from "../Preparation.js"

const wrong = (index: number, message: string) =>
  Result.fail(invalidAt(`operations[${index}].dependsOn`, message))

const first = (on: Dependencies.Dependencies): number => on.findIndex((each) => each !== null)

/** Dependencies of a request's operations; 400 that names the first invalid one. */
export const dependencies = (
  operations: ReadonlyArray<Operation>
): Result.Result<Dependencies.Dependencies, Failure> => {
  const on = operations.map(({ dependsOn }) => dependsOn ?? null)
  return Result.match(Dependencies.check(on), {
    onFailure: ({ index, message }) => wrong(index, message),
    onSuccess: () => Result.succeed(on)
  })
}

/**
 * The ledger that enforces dependencies between ops of one transaction. Null: none is needed, or an external bundler
 * splits the ops anyway.
 */
export const ledger = (
  on: Dependencies.Dependencies,
  { profile }: Pick<Connection, "profile">
): Address | null => (Dependencies.any(on) && profile.remoteBundler === null ? profile.ledger : null)

/** 400 for dependencies that need a ledger where the profile has none. */
export const requireLedger = (
  on: Dependencies.Dependencies,
  connection: Pick<Connection, "profile">
): Result.Result<void, Failure> =>
  !Dependencies.any(on) || connection.profile.remoteBundler !== null || ledger(on, connection) !== null
    ? Result.void
    : wrong(
        first(on),
        "the network profile names no ledger: ask the operator for one, or send this operation once the other has succeeded"
      )

/** 400 for dependencies of handed-out ops where an external bundler splits them: no contract would enforce them. */
export const requireOwnBundler = (
  on: Dependencies.Dependencies,
  { profile }: Pick<Connection, "profile">
): Result.Result<void, Failure> =>
  !Dependencies.any(on) || profile.remoteBundler === null
    ? Result.void
    : wrong(
        first(on),
        "this chain's bundler keeps no ops together: use /execute, or send this operation once the other has succeeded"
      )

/** 400 unless the ledger's address has a contract: calls of an empty address succeed and enforce no dependency. */
export const requireContract = (
  on: Dependencies.Dependencies,
  connection: Connection
): Effect.Effect<void, Failure, ChainFacts> =>
  Effect.gen(function* () {
    const at = ledger(on, connection)
    if (at === null) return
    const facts = yield* ChainFacts
    const code = yield* Effect.mapError(facts.code(connection.chain, at), refusal(connection.trust))
    if (code === null)
      yield* Effect.fromResult(
        wrong(first(on), `there is no ledger at ${at} on this chain: ask the operator`)
      )
  })

/** Identifies an op for ops that depend on it. */
export interface Name {
  readonly wallet: Address
  readonly key: Hex.Bytes32
}

/** Links of each element to the others. */
export const of = (
  on: Dependencies.Dependencies,
  elements: ReadonlyArray<number>,
  nameOf: (index: number) => Name
): ((index: number) => Ledger.Links) => {
  const inner = Dependencies.within(on, elements)
  const asked = new Set(inner)
  return (index) => {
    const before = inner[index] ?? null
    return {
      records: asked.has(index) ? nameOf(index).key : null,
      requires: before === null ? null : nameOf(before)
    }
  }
}

/** The wallet's calldata of a linked call; without a ledger calls are not linked. */
export const callData = (
  ledger: Address | null,
  call: Parameters<typeof Ledger.callData>[1],
  links: Ledger.Links
): Hex.Hex =>
  ledger === null ? Ledger.callData(call.target, call, Ledger.unlinked) : Ledger.callData(ledger, call, links)

/** Adds failure reasons. An element after a failed dependency reverts only because of that dependency. */
export const fail = (
  on: Dependencies.Dependencies,
  order: ReadonlyArray<number>,
  own: ReadonlyMap<number, ElementFailure>,
  failed: Map<number, ElementFailure>
): void => {
  for (const index of order) {
    const before = on[index] ?? null
    const failure = before !== null && failed.has(before) ? dependencyFailed(before) : own.get(index)
    if (failure !== undefined) failed.set(index, failure)
  }
}

/** Fails all direct and indirect dependants of failed elements. */
export const failDependants = (on: Dependencies.Dependencies, failed: Map<number, ElementFailure>): void => {
  if (failed.size === 0 || !Dependencies.any(on)) return
  for (const index of Dependencies.order(on)) {
    const before = on[index] ?? null
    if (before !== null && failed.has(before) && !failed.has(index))
      failed.set(index, dependencyFailed(before))
  }
}

/** Whether an element fails, or one on which it depends. */
export const hasFailed = (
  on: Dependencies.Dependencies,
  failed: ReadonlyMap<number, unknown>,
  index: number | null
): boolean => {
  let at = index
  while (at !== null && !failed.has(at)) at = on[at] ?? null
  return at !== null
}

/** The preparation without these failing elements and their dependants. */
export const leaveOut = (
  on: Dependencies.Dependencies,
  prepared: Prepared,
  failing: ReadonlyMap<number, ElementFailure>
): Prepared => {
  if (failing.size === 0) return prepared
  const failed = new Map([...prepared.failed, ...failing])
  failDependants(on, failed)
  const { deployments, ops, waiting } = prepared
  return {
    ...prepared,
    ops: ops.filter(({ index }) => !failed.has(index)),
    // Each creation has one, in the order of the ops.
    deployments: deployments.filter((_, place) => !failed.has(ops[place]?.index ?? -1)),
    waiting: new Map([...waiting].filter(([index]) => !failed.has(index))),
    failed
  }
}
