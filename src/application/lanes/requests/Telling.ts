import * as Effect from "effect/Effect"
import type { RemoteOpJournal } from "../../ports/journal/RemoteOpJournal.js"
import type { RequestJournal } from "../../ports/journal/RequestJournal.js"
import type { TransactionJournal } from "../../ports/journal/TransactionJournal.js"
import type { WakeUps } from "./WakeUps.js"

/** The journals that the engine writes to. */
export interface Journals {
  readonly requestJournal: RequestJournal["Service"]
  readonly transactionJournal: TransactionJournal["Service"]
  readonly remoteOpJournal: RemoteOpJournal["Service"]
}

/**
 * The same, of which streams of events and webhooks hear at once that they have written an event. Of the methods that are
 * not here, whoever calls them wakes those whom it concerns.
 */
export const journals = (
  { tell }: Pick<WakeUps, "tell">,
  { remoteOpJournal, requestJournal, transactionJournal }: Journals
): Journals => {
  const telling =
    <Args extends ReadonlyArray<unknown>, A, E>(method: (...args: Args) => Effect.Effect<A, E>) =>
    (...args: Args): Effect.Effect<A, E> =>
      Effect.tap(method(...args), tell)
  return {
    requestJournal: {
      ...requestJournal,
      accept: telling(requestJournal.accept),
      acceptOps: telling(requestJournal.acceptOps)
    },
    transactionJournal: {
      ...transactionJournal,
      record: telling(transactionJournal.record),
      recordSigned: telling(transactionJournal.recordSigned),
      recordSubmitted: telling(transactionJournal.recordSubmitted)
    },
    remoteOpJournal: {
      ...remoteOpJournal,
      submitRemotely: telling(remoteOpJournal.submitRemotely),
      handOver: telling(remoteOpJournal.handOver),
      recordTaken: telling(remoteOpJournal.recordTaken),
      recordInclusions: telling(remoteOpJournal.recordInclusions),
      finaliseInclusions: telling(remoteOpJournal.finaliseInclusions)
    }
  }
}
