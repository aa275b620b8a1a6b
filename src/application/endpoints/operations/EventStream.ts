import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import type * as Stream from "effect/Stream"
import type { RequestEvent } from "../../ports/journal/Events.js"

/** Events of a request, as they come; null: there will be no more of them. */
export class EventStream {
  constructor(readonly events: Stream.Stream<RequestEvent> | null) {}
}

const self = Schema.declare((value): value is EventStream => value instanceof EventStream)

/** As the contract names it. What stands on the wire is made by the host, which never encodes it. */
export const schema: Schema.Codec<EventStream, string> = Schema.String.pipe(
  Schema.decodeTo(
    self,
    SchemaTransformation.transform({ decode: () => new EventStream(null), encode: () => "" })
  )
)
