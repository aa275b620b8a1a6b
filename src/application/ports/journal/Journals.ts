import type { LaneJournal } from "./LaneJournal.js"
import type { OpJournal } from "./OpJournal.js"
import type { RecoveryJournal } from "./RecoveryJournal.js"
import type { RemoteOpJournal } from "./RemoteOpJournal.js"
import type { RequestJournal } from "./RequestJournal.js"
import type { TransactionJournal } from "./TransactionJournal.js"

/**
 * The durable memory of every write, a port per subject. One adapter provides them together, over one store. Each method
 * is one transaction: when it returns, its effect survives the process; when it fails, it has none. It survives the machine
 * too, if need be from the moment on at which a later method has returned: methods after which something leaves the process
 * (signed bytes, what another bundler gets, final answers, what is read for a caller, `RequestJournal.durable`) return when it does.
 */
export type Journals =
  | RequestJournal
  | OpJournal
  | LaneJournal
  | TransactionJournal
  | RemoteOpJournal
  | RecoveryJournal
