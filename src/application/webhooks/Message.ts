import * as DateTime from "effect/DateTime"
import type { Message } from "../../domain/crypto/StandardWebhook.js"
import type { Delivery } from "../ports/Webhooks.js"

/** What an event is of, and what it says of that beside its data. */
const subjectOf = (delivery: Delivery) => {
  const { event } = delivery
  const { sequence } = event
  const chainId = Number(delivery.chainId)
  if ("watchId" in delivery) {
    const { watchId } = delivery
    return { type: `watch.${event.kind}`, id: watchId, about: { watchId, sequence, chainId } }
  }
  const { endpoint, metadata, requestId } = delivery
  return {
    type: `request.${event.kind}`,
    id: requestId,
    about: { requestId, sequence, endpoint, chainId, metadata }
  }
}

/** What an endpoint is sent, the same bytes with every attempt but for the time of it. */
export const make = (delivery: Delivery, now: number): Message => {
  const { event } = delivery
  const { about, id, type } = subjectOf(delivery)
  return {
    // The same in every attempt: receivers tell repeats by it.
    id: `${id}_${event.sequence}`,
    timestamp: Math.floor(now / 1_000),
    body: JSON.stringify({
      type,
      timestamp: DateTime.formatIso(DateTime.makeUnsafe(event.at)),
      data: { ...about, ...event.data }
    })
  }
}
