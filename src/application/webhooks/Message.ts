import * as DateTime from "effect/DateTime"
import type { Message } from "../../domain/crypto/StandardWebhook.js"
import type { Delivery } from "../ports/Webhooks.js"

/** What an endpoint is sent, the same bytes with every attempt but for the time of it. */
export const make = ({ chainId, endpoint, event, metadata, requestId }: Delivery, now: number): Message => ({
  // The same in every attempt: receivers tell repeats by it.
  id: `${requestId}_${event.sequence}`,
  timestamp: Math.floor(now / 1_000),
  body: JSON.stringify({
    type: `request.${event.kind}`,
    timestamp: DateTime.formatIso(DateTime.unsafeMake(event.at)),
    data: {
      requestId,
      sequence: event.sequence,
      endpoint,
      chainId: Number(chainId),
      metadata,
      ...event.data
    }
  })
})
