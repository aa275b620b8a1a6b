import type { LaneJournal } from "./LaneJournal.js"
import type { OpJournal } from "./OpJournal.js"
import type { RemoteOpJournal } from "./RemoteOpJournal.js"
import type { RequestJournal } from "./RequestJournal.js"
import type { TransactionJournal } from "./TransactionJournal.js"

/**
 * The durable memory of every write, a port per subject. One adapter provides them together, over one store. Each method
 * is one transaction: when it returns, its effect survives the process; when it fails, it has none.
 */
export type Journals = RequestJournal | OpJournal | LaneJournal | TransactionJournal | RemoteOpJournal
