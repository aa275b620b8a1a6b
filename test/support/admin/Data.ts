import * as Effect from "effect/Effect"
import type { Facts } from "../../../src/application/operate/Incidents.js"
import type { Data } from "../../../src/hosts/console/Data.js"

/** No waiting work and no problem. */
export const facts: Facts = {
  now: 0,
  chains: [],
  waiting: [],
  transactions: [],
  budgets: [],
  held: [],
  database: { isWritable: true, errors: 0 },
  failingSigners: new Map(),
  isClockDoubted: false,
  isRateLimitStoreAway: false,
  failingWebhooks: []
}

/** Data of the operator's port for an empty service. */
export const empty: Data = {
  refresh: Effect.void,
  observer: {
    situation: () => ({ facts, incidents: [], endedAt: null }),
    series: { sample: Effect.void, hour: Effect.succeed([]), day: Effect.succeed([]) }
  },
  profiles: [],
  accounts: [],
  transactions: { open: Effect.succeed([]), openOf: () => Effect.succeed([]) },
  history: { find: () => Effect.succeed([]), search: () => Effect.succeed([]) },
  walletsOf: () => [],
  requests: {
    bodies: () => Effect.succeed([]),
    events: () => Effect.succeed([]),
    request: () => Effect.succeed(null)
  },
  recovery: { unhold: () => Effect.succeed(false) },
  tenants: {
    content: Effect.succeed({ accounts: [], keys: [], networks: [], signers: [], pauses: [] }),
    pause: () => Effect.void,
    resume: () => Effect.void,
    endKey: () => Effect.void,
    uses: Effect.succeed(new Map())
  },
  budgets: { open: () => Effect.succeed([]), figures: () => Effect.succeed({ held: 0n, booked: 0n }) },
  policies: {
    changes: (latest) => Effect.succeed({ latest, accounts: [] }),
    current: () => Effect.succeed([])
  },
  webhooks: {
    list: () => Effect.succeed([]),
    oldest: Effect.succeed(null),
    dead: () => Effect.succeed([]),
    changes: () => Effect.succeed([])
  },
  audit: { find: () => Effect.succeed([]) },
  operators: { find: () => Effect.succeed([]), record: () => Effect.void },
  failures: Effect.succeed([]),
  refusal: () => Effect.succeed(null),
  delayOf: () => null,
  unknown: () => [],
  call: () => Effect.succeed(null),
  unstick: () => Effect.succeed({ replaced: [], left: [] }),
  cancel: () => Effect.succeed(false)
}
