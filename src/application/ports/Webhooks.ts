import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import type { EventKind, RequestEvent } from "./journal/Events.js"
import type { Metadata } from "./journal/Requests.js"
import type { AccountId } from "./Tenants.js"
import type { WatchEvent } from "./Watches.js"

/** An endpoint of an account that is told of its requests' events. */
export interface Webhook {
  readonly webhookId: string
  readonly accountId: AccountId
  /** Sealed at rest: keys sit in paths. Null: it was sealed under another key. */
  readonly url: Redacted.Redacted<string> | null
  /** Empty: all. */
  readonly kinds: ReadonlyArray<EventKind>
  /** `failing`: paused by the service, since nothing was taken for days, or the endpoint has said that it is gone. */
  readonly state: "enabled" | "paused" | "failing"
  /** Unix milliseconds. */
  readonly createdAt: number
  /** Events that are not delivered yet, and those that are given up. */
  readonly waiting: number
  readonly dead: number
}

/** An event of a request, or of a contract that is watched. */
export type Told =
  | {
      readonly requestId: string
      readonly endpoint: string
      /** What its caller says of the request. */
      readonly metadata: Metadata
      readonly event: RequestEvent
    }
  | { readonly watchId: string; readonly event: WatchEvent }

/** One event on its way to one endpoint. */
export type Delivery = Told & {
  readonly chainId: bigint
  /** Failed attempts. */
  readonly attempts: number
  /** When the first of them did, Unix milliseconds. */
  readonly failingSince: number | null
  /** What the last one has come to. */
  readonly lastError: string | null
}

/** All that a delivery needs; more secrets than one while older ones count beside the newest, which is the first. */
export interface Target {
  readonly webhookId: string
  readonly accountId: AccountId
  readonly url: Redacted.Redacted<string>
  readonly secrets: ReadonlyArray<Redacted.Redacted<string>>
}

/** Names one event of one request, or of one watch. */
export type DeliveryRef = ({ readonly requestId: string } | { readonly watchId: string }) & {
  readonly webhookId: string
  readonly sequence: number
}

/** One change of an endpoint, or of a watch of it, as it was logged in the transaction that made it. Nothing in that log is ever changed. */
export interface EndpointChange {
  /** Unix milliseconds. */
  readonly at: number
  readonly webhookId: string
  /** Null: the endpoint itself was changed. */
  readonly watchId: string | null
  readonly accountId: AccountId
  readonly what: "added" | Webhook["state"] | "kinds" | "rotated" | "removed" | "redelivered"
  /** The id of the request that made it, `operator`, or `service`. */
  readonly by: string
}

/**
 * - `tooMany`: the account has as many as it may
 * - `tooManySecrets`: as many older secrets count as may
 * - `unavailable`: the store failed
 */
export class WebhooksError extends Data.TaggedError("WebhooksError")<{
  readonly reason: "tooMany" | "tooManySecrets" | "unavailable"
  readonly message: string
}> {}

type Asked<A> = Effect.Effect<A, WebhooksError>

/**
 * Endpoints, and the events that are owed to them: an event is owed from the moment that the journal has it to every
 * endpoint that is there then, and wants its kind.
 */
export class Webhooks extends Context.Service<
  Webhooks,
  {
    /** A fresh endpoint with a secret of its own, which is told here and nowhere else. */
    readonly add: (
      accountId: AccountId,
      url: Redacted.Redacted<string>,
      kinds: ReadonlyArray<EventKind>,
      by: string
    ) => Asked<{ readonly webhookId: string; readonly secret: Redacted.Redacted<string> }>
    /** In the order of their making; of one account, or of all. */
    readonly list: (accountId: AccountId | null) => Asked<ReadonlyArray<Webhook>>
    /** What is owed meanwhile waits. False: there is no such endpoint. */
    readonly setState: (webhookId: string, state: Webhook["state"], by: string) => Asked<boolean>
    /** For events from now on. */
    readonly setKinds: (webhookId: string, kinds: ReadonlyArray<EventKind>, by: string) => Asked<boolean>
    /**
     * A new secret; the one before it counts until that time, and those before that until the times that were said of
     * them. From now on at the latest: none of them counts any more. Null: there is no such endpoint.
     */
    readonly rotate: (webhookId: string, until: number, by: string) => Asked<Redacted.Redacted<string> | null>
    /** With all that is owed to it. */
    readonly remove: (webhookId: string, by: string) => Asked<boolean>
    /** What was given up, oldest first; without the data of the events, which may be long. */
    readonly dead: (webhookId: string, limit: number) => Asked<ReadonlyArray<Delivery>>
    /** Owes it once more, of one request or watch or of all; tells how many events that are. */
    readonly redeliver: (webhookId: string, ofId: string | null, by: string) => Asked<number>
    /** The newest first; of an endpoint, also one that was removed, or of all. */
    readonly changes: (webhookId: string | null, limit: number) => Asked<ReadonlyArray<EndpointChange>>

    /** Enabled endpoints to which something is due now, and which no other process has claimed. */
    readonly due: (process: string) => Asked<ReadonlyArray<string>>
    /**
     * This process delivers to the endpoint until that time, some minutes from now at most; false: another one does, or it is
     * not enabled.
     */
    readonly claim: (webhookId: string, process: string, until: number) => Asked<boolean>
    readonly release: (webhookId: string, process: string) => Asked<void>
    /** What is due to it: of each request and watch the first event that is owed alone. Null: it is gone, or cannot be read. */
    readonly next: (
      webhookId: string,
      limit: number
    ) => Asked<{ readonly target: Target; readonly deliveries: ReadonlyArray<Delivery> } | null>
    readonly delivered: (delivery: DeliveryRef) => Asked<void>
    /** It, and what is owed of the request or watch after it, is due again at that time; null: it is given up. */
    readonly failed: (delivery: DeliveryRef, error: string, retryAt: number | null) => Asked<void>
    /** Nothing is due to the endpoint until then. */
    readonly rest: (webhookId: string, until: number) => Asked<void>
    /** When the oldest event came to be that is owed to an enabled endpoint; null: none is. Unix milliseconds. */
    readonly oldest: Asked<number | null>
  }
>()("castellan/Webhooks") {}

/** Why an endpoint has not taken an event. Its words may hold nothing of the URL but its origin. */
export class DeliveryFailure extends Data.TaggedError("DeliveryFailure")<{ readonly message: string }> {}

/** What an endpoint has answered; whatever else is in the answer is not looked at. */
export interface Answered {
  readonly status: number
  /** For so long it wants to be left alone (Retry-After); 0: it does not say. */
  readonly retryAfterMillis: number
}

/** Sends events, under the rules for URLs that callers name. */
export class WebhookSender extends Context.Service<
  WebhookSender,
  {
    /** Why nothing of the account may be sent to the URL; null: it may. A name is judged when it is connected to. */
    readonly refusal: (accountId: AccountId, url: string) => string | null
    /** Redirects are not followed. */
    readonly send: (
      accountId: AccountId,
      url: Redacted.Redacted<string>,
      headers: Readonly<Record<string, string>>,
      body: string
    ) => Effect.Effect<Answered, DeliveryFailure>
  }
>()("castellan/WebhookSender") {}
