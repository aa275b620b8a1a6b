import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as BuiltIn from "../../domain/abi/BuiltIn.js"
import * as Log from "../../domain/abi/Log.js"
import * as Revert from "../../domain/abi/Revert.js"
import * as UseAbi from "../../domain/abi/UseAbi.js"
import type { RawLog } from "../../domain/evm/RawLog.js"
import type { Hex } from "../../domain/primitives/Hex.js"
import { type InvalidRequest, invalidAt } from "../failures/Failure.js"
import { AbiStore, OperatorAbi } from "../ports/AbiStore.js"
import type { Caller } from "./Caller.js"

/** Decodes one request's logs and reverts. */
export interface Decoding {
  /** The failure in one line. */
  readonly revert: (data: Hex) => string
  readonly log: (log: RawLog) => Log.DecodedLog
}

/** Caches a value per array of definitions: a store returns the same array until it changes. */
const keeping = <A, B>(make: (list: ReadonlyArray<A>) => B): ((list: ReadonlyArray<A>) => B) => {
  const kept = new WeakMap<ReadonlyArray<A>, B>()
  return (list) => {
    const made = kept.get(list) ?? make(list)
    kept.set(list, made)
    return made
  }
}

const eventIndex = keeping(Log.index)
const errorIndex = keeping(Revert.index)

/** The request's own definitions; the error names an invalid one by its index. */
export const own = (
  useABI: ReadonlyArray<unknown> = [],
  path = "settings.useABI"
): Effect.Effect<UseAbi.UseAbi, InvalidRequest> =>
  Effect.suspend(() =>
    Effect.fromResult(
      Result.mapError(UseAbi.parse(useABI), ({ index, message }) => invalidAt(`${path}[${index}]`, message))
    )
  )

/**
 * Definitions in order of precedence: the request's `useABI`, the account's registered ones, the operator's, the
 * built-in ones.
 */
export const load = (
  caller: Caller,
  useABI: ReadonlyArray<unknown> | undefined,
  path = "settings.useABI"
): Effect.Effect<Decoding, InvalidRequest, AbiStore> =>
  Effect.gen(function* () {
    const store = yield* AbiStore
    const operator = yield* OperatorAbi
    const { errors: ownErrors, events: ownEvents } = yield* own(useABI, path)
    const { errors, events } = yield* Effect.orDie(store.definitions(caller.principal.accountId))
    const revert = Revert.decoder([
      Revert.index(ownErrors),
      errorIndex(errors),
      errorIndex(operator.errors),
      BuiltIn.errorIndex
    ])
    const log = Log.decoder([
      Log.index(ownEvents),
      eventIndex(events),
      eventIndex(operator.events),
      BuiltIn.eventIndex
    ])
    return { revert: (data) => revert(data).message, log }
  })
