import type { LaneJournal } from "./LaneJournal.js"
import type { OpJournal } from "./OpJournal.js"
import type { RecoveryJournal } from "./RecoveryJournal.js"
import type { RemoteOpJournal } from "./RemoteOpJournal.js"
import type { RequestJournal } from "./RequestJournal.js"
import type { TransactionJournal } from "./TransactionJournal.js"

/**
 * The durable memory of every write, one port per subject; one adapter provides all of them over one store. Each method
 * is one transaction: when it returns, its effect survives the process; when it fails, it has none. It survives the
 * machine too, possibly only once a later method has returned. Methods that precede data leaving the process (signed
 * bytes, ops for another bundler, final answers, reads for a caller, `RequestJournal.durable`) return only then.
 */
export type Journals =
  | RequestJournal
  | OpJournal
  | LaneJournal
  | TransactionJournal
  | RemoteOpJournal
  | RecoveryJournal
