import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as LensBatch from "../../../domain/erc4337/gas/LensBatch.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import type { ChainFacts } from "../../chain/ChainFacts.js"
import type { CallResult, ChainClient, ChainRpcError, StateOverride } from "../../ports/chain/ChainRpc.js"
import type { AccountId } from "../../ports/Tenants.js"

/**
 * Looks through the lens that one account has at one moment leave as one call: the code of lens and EntryPoint, which is
 * most of what a look sends, goes over once. Those of different accounts never share one: whoever has an op that takes
 * all gas of a call, or all time of the node, takes it from his own.
 */

export interface Look {
  readonly chain: ChainClient
  readonly accountId: AccountId
  readonly from: Address
  readonly entryPoint: Address
  /** The same object for looks that may share a call. */
  readonly overrides: ReadonlyMap<Address, StateOverride>
  readonly data: Hex.Hex
}

/** What a look was answered; `isShared`: as a part of a call, in which it had less gas than it would have alone. */
export interface Answer extends CallResult {
  readonly isShared: boolean
}

interface Asker {
  readonly data: Hex.Hex
  readonly resume: (answer: Effect.Effect<Answer, ChainRpcError>) => void
}

interface Group {
  readonly overrides: Look["overrides"]
  readonly askers: Array<Asker>
  digits: number
}

/** Looks in a call: under 50 million gas, which many nodes grant a call, so many usual ones starve none. */
export const most = 32

/** Hex digits of calldata in a call beside the code. */
export const mostDigits = 262_144

/** By node and by what has to be alike; a group is there until its call leaves. */
const open = new WeakMap<ChainClient, Map<string, Group>>()

const groupsOf = (chain: ChainClient): Map<string, Group> => {
  const known = open.get(chain) ?? new Map<string, Group>()
  open.set(chain, known)
  return known
}

/** The node says of the whole call what it might not say of a part of it. */
export const mayBeOfShare = ({ reason }: ChainRpcError): boolean =>
  reason === "rejected" || reason === "notAnRpc" || reason === "unsupported"

/** Asks without company. */
export const alone = (
  facts: ChainFacts,
  { chain, data, entryPoint, from, overrides }: Look
): Effect.Effect<Answer, ChainRpcError> =>
  Effect.map(facts.generousCall(chain, { from, to: entryPoint, data }, overrides), (result) => ({
    ...result,
    isShared: false
  }))

/** Tells everybody what the call of their group came to. */
const tell = (
  askers: ReadonlyArray<Asker>,
  exit: Exit.Exit<CallResult, ChainRpcError>,
  apart: (data: Hex.Hex) => Effect.Effect<Answer, ChainRpcError>
): void => {
  const [first] = askers
  if (askers.length === 1) {
    first?.resume(Effect.map(exit, (result) => ({ ...result, isShared: false })))
    return
  }
  const parts =
    Exit.isSuccess(exit) && exit.value.success ? LensBatch.decode(exit.value.data, askers.length) : null
  for (const [place, { data, resume }] of askers.entries()) {
    const part = parts?.[place]
    if (part !== undefined) resume(Effect.succeed({ success: true, data: part, isShared: true }))
    else
      resume(
        Effect.matchEffect(exit, {
          onSuccess: () => apart(data),
          onFailure: (error) => (mayBeOfShare(error) ? apart(data) : Effect.fail(error))
        })
      )
  }
}

/** Asks together with what else the account asks at this moment; alone where that gives nothing. */
export const ask = (facts: ChainFacts, look: Look): Effect.Effect<Answer, ChainRpcError> =>
  Effect.withFiber((fiber) =>
    Effect.callback((resume) => {
      const { accountId, chain, data, entryPoint, from, overrides } = look
      const groups = groupsOf(chain)
      const key = `${accountId} ${from} ${entryPoint}`
      const present = groups.get(key)
      if (
        present?.overrides === overrides &&
        present.askers.length < most &&
        present.digits + data.length <= mostDigits
      ) {
        present.askers.push({ data, resume })
        present.digits += data.length
        return
      }
      const group: Group = { overrides, askers: [{ data, resume }], digits: data.length }
      groups.set(key, group)
      const close = (): void => {
        if (groups.get(key) === group) groups.delete(key)
      }
      const call = () => {
        close()
        const { askers } = group
        return {
          from,
          to: entryPoint,
          data: askers.length === 1 ? data : LensBatch.encode(askers.map((asker) => asker.data))
        }
      }
      // Whoever was first may give up while others wait.
      Effect.runForkWith(fiber.context)(facts.generousCall(chain, call, overrides)).addObserver((exit) => {
        close()
        tell(group.askers, exit, (own) => alone(facts, { ...look, data: own }))
      })
    })
  )
