import * as Effect from "effect/Effect"
import type { Data } from "../../../src/hosts/admin/console/Data.js"

/** Data of the operator's port for an empty service. */
export const empty: Data = {
  refresh: Effect.void,
  profiles: [],
  accounts: [],
  transactions: { open: Effect.succeed([]), openOf: () => Effect.succeed([]) },
  history: { find: () => Effect.succeed([]) },
  requests: { request: () => Effect.succeed(null) },
  tenants: {
    content: Effect.succeed({ accounts: [], keys: [], networks: [], signers: [], pauses: [] }),
    pause: () => Effect.void,
    resume: () => Effect.void
  },
  budgets: { open: () => Effect.succeed([]) },
  webhooks: {
    list: () => Effect.succeed([]),
    oldest: Effect.succeed(null),
    dead: () => Effect.succeed([]),
    changes: () => Effect.succeed([])
  },
  audit: { find: () => Effect.succeed([]) },
  unstick: () => Effect.succeed({ replaced: [], left: [] })
}
