import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { EventKind, RequestEvent } from "./journal/Events.js"
import type { Metadata } from "./journal/Requests.js"
import type { AccountId } from "./Tenants.js"
import type { WatchEvent } from "./Watches.js"

/** An account's endpoint that receives events. */
export interface Webhook {
  readonly webhookId: string
  readonly accountId: AccountId
  /** Sealed at rest: paths may hold keys. Null: sealed under another key. */
  readonly url: Redacted.Redacted<string> | null
  /** Empty: all. */
  readonly kinds: ReadonlyArray<EventKind>
  /** `failing`: paused by the service: it has accepted no event for days, or answered that it is gone. */
  readonly state: "enabled" | "paused" | "failing"
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Undelivered events, and abandoned events. */
  readonly waiting: number
  readonly dead: number
}

/** An event of a request, or of a watched contract. */
export type WebhookEvent =
  | {
      readonly requestId: string
      readonly endpoint: string
      /** The caller's metadata for the request. */
      readonly metadata: Metadata
      readonly event: RequestEvent
    }
  | { readonly watchId: string; readonly event: WatchEvent }

/** One event for one endpoint. */
export type Delivery = WebhookEvent & {
  readonly chainId: bigint
  /** Failed attempts. */
  readonly attempts: number
  /** Time of the first failed attempt, Unix milliseconds; null: none. */
  readonly failingSince: number | null
  readonly lastError: string | null
}

/** The data that a delivery needs. `secrets` holds the newest secret first, then older ones that are still active. */
export interface Target {
  readonly webhookId: string
  readonly accountId: AccountId
  readonly url: Redacted.Redacted<string>
  readonly secrets: ReadonlyArray<Redacted.Redacted<string>>
}

/** Identifies one event of one request or watch. */
export type DeliveryRef = ({ readonly requestId: string } | { readonly watchId: string }) & {
  readonly webhookId: string
  readonly sequence: number
}

/** One change of an endpoint or of its watches, logged in the same transaction. Entries never change. */
export interface EndpointChange {
  /** Unix milliseconds. */
  readonly at: number
  readonly webhookId: string
  /** Null: the change is the endpoint's. */
  readonly watchId: string | null
  readonly accountId: AccountId
  readonly what: "added" | Webhook["state"] | "kinds" | "rotated" | "removed" | "redelivered"
  /** Author: a request id, `operator` or `service`. */
  readonly by: string
}

/**
 * - `tooMany`: the account has reached its limit
 * - `tooManySecrets`: too many older secrets are active
 * - `unavailable`: the store failed
 */
export class WebhooksError extends Data.TaggedError("WebhooksError")<{
  readonly reason: "tooMany" | "tooManySecrets" | "unavailable"
  readonly message: string
}> {}

type Asked<A> = Effect.Effect<A, WebhooksError>

/**
 * Endpoints and their undelivered events. When the journal stores an event, it becomes due to every endpoint that
 * exists then and subscribes to its kind.
 */
export class Webhooks extends Context.Service<
  Webhooks,
  {
    /** Adds an endpoint and its secret. No other method returns this secret. */
    readonly add: (
      accountId: AccountId,
      url: Redacted.Redacted<string>,
      kinds: ReadonlyArray<EventKind>,
      by: string
    ) => Asked<{ readonly webhookId: string; readonly secret: Redacted.Redacted<string> }>
    /** In creation order, for one account or all. */
    readonly list: (accountId: AccountId | null) => Asked<ReadonlyArray<Webhook>>
    /** While the endpoint is paused, its events wait. False: no such endpoint. */
    readonly setState: (webhookId: string, state: Webhook["state"], by: string) => Asked<boolean>
    /** Applies to future events. */
    readonly setKinds: (webhookId: string, kinds: ReadonlyArray<EventKind>, by: string) => Asked<boolean>
    /**
     * Issues a new secret. The previous secret stays active until `until`; older secrets keep the ends they were given.
     * An `until` that is not in the future ends all older secrets. Null: no such endpoint.
     */
    readonly rotate: (webhookId: string, until: number, by: string) => Asked<Redacted.Redacted<string> | null>
    /** Removes its undelivered events too. */
    readonly remove: (webhookId: string, by: string) => Asked<boolean>
    /** Abandoned deliveries, oldest first, without the events' data, which may be long. */
    readonly dead: (webhookId: string, limit: number) => Asked<ReadonlyArray<Delivery>>
    /** Queues abandoned events again, of one request or watch or of all, and returns their number. */
    readonly redeliver: (webhookId: string, ofId: string | null, by: string) => Asked<number>
    /** Newest first, for one endpoint (a removed endpoint too) or all. */
    readonly changes: (webhookId: string | null, limit: number) => Asked<ReadonlyArray<EndpointChange>>

    /** Enabled endpoints that have an event due now and that no other process has claimed. */
    readonly due: (process: string) => Asked<ReadonlyArray<string>>
    /**
     * Claims the endpoint for this process until `until`, at most some minutes from now. False: another process has it,
     * or it is not enabled.
     */
    readonly claim: (webhookId: string, process: string, until: number) => Asked<boolean>
    readonly release: (webhookId: string, process: string) => Asked<void>
    /** The due deliveries: only the first undelivered event of each request and watch. Null: gone, or unreadable. */
    readonly next: (
      webhookId: string,
      limit: number
    ) => Asked<{ readonly target: Target; readonly deliveries: ReadonlyArray<Delivery> } | null>
    readonly delivered: (delivery: DeliveryRef) => Asked<void>
    /** The delivery and its subject's later ones are due at `retryAt`; null: the delivery is abandoned. */
    readonly failed: (delivery: DeliveryRef, error: string, retryAt: number | null) => Asked<void>
    /** No delivery to the endpoint is due before `until`. */
    readonly rest: (webhookId: string, until: number) => Asked<void>
    /** Time of the oldest event that is undelivered to an enabled endpoint, Unix milliseconds; null: none. */
    readonly oldest: Asked<number | null>
  }
>()("castellan/Webhooks") {}

/** An endpoint did not accept an event. `message` holds no part of the URL except its origin. */
export class DeliveryFailure extends Data.TaggedError("DeliveryFailure")<{ readonly message: string }> {}

/** An endpoint's response. */
export interface Answered {
  readonly status: number
  /** At most 64 KiB. */
  readonly body: string
  /** Wait that the endpoint requests (Retry-After); 0: none. */
  readonly retryAfterMillis: number
}

/** Sends events, under the egress rules for URLs that callers name. */
export class WebhookSender extends Context.Service<
  WebhookSender,
  {
    /** Refusal of the URL for the account's data; null: allowed. A host name is judged when it is connected to. */
    readonly refusal: (accountId: AccountId, url: string) => string | null
    /** Tries once, and does not follow redirects. `accountId` null: the operator has named the URL, which may lead anywhere. */
    readonly send: (
      accountId: AccountId | null,
      url: Redacted.Redacted<string>,
      headers: Readonly<Record<string, string>>,
      body: string
    ) => Effect.Effect<Answered, DeliveryFailure>
  }
>()("castellan/WebhookSender") {}
