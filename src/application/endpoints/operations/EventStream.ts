import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type * as Stream from "effect/Stream"
import type { RequestEvent } from "../../ports/journal/Events.js"

/** A request's events as they come; null: no more will come. */
export class EventStream {
  constructor(readonly events: Stream.Stream<RequestEvent> | null) {}
}

const self = Schema.declare((value): value is EventStream => value instanceof EventStream)

/** A placeholder for the contract. The host writes the events to the wire and never encodes this. */
export const schema: Schema.Codec<EventStream, string> = Schema.String.pipe(
  Schema.decodeTo(
    self,
    SchemaTransformation.transform({ decode: () => new EventStream(null), encode: () => "" })
  )
)
