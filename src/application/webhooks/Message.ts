import * as DateTime from "effect/DateTime"
import type { Message } from "../../domain/crypto/StandardWebhook.js"
import type { Delivery } from "../ports/Webhooks.js"

/** The subject of an event, and its fields in addition to the event's data. */
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

/** The message to an endpoint: identical bytes in every attempt, except for the attempt's time. */
export const make = (delivery: Delivery, now: number): Message => {
  const { event } = delivery
  const { about, id, type } = subjectOf(delivery)
  return {
    // Constant over all attempts: receivers detect repeats by it.
    id: `${id}_${event.sequence}`,
    timestamp: Math.floor(now / 1_000),
    body: JSON.stringify({
      type,
      timestamp: DateTime.formatIso(DateTime.makeUnsafe(event.at)),
      data: { ...about, ...event.data }
    })
  }
}
