import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as IpAddress from "../../domain/net/IpAddress.js"
import { optional, says } from "./FileFields.js"

const Range = Schema.String.check(
  Schema.makeFilter((text) => Result.isSuccess(IpAddress.range(text)))
).annotate(says("expected an IP address or a range of them, 10.0.0.0/8 for example"))

const Origin = Schema.String.check(
  Schema.makeFilter((text) => /^https?:/.test(text) && URL.canParse(text) && new URL(text).origin === text)
).annotate(
  says(
    "expected an origin as browsers send it, https://app.example for example: no path, no default port, no *"
  )
)

/** Configuration fields about admission of clients and destinations of callers' URLs. */
export const edgeFields = {
  trustedProxies: optional(Schema.Array(Range)),
  cors: optional(
    Schema.Struct({ origins: Schema.Array(Origin) }).annotate(says('expected {"origins": [origin]}'))
  ),
  egress: optional(
    Schema.Struct({
      allow: optional(Schema.Array(Range)),
      accounts: optional(Schema.Record(Schema.String, Schema.Array(Range)))
    }).annotate(says('expected {"allow": [range], "accounts": {accountId: [range]}}'))
  )
}

const EdgeFile = Schema.Struct(edgeFields)

/** Admission of clients, and destinations of callers' URLs. */
export interface Edge {
  /** Proxies whose X-Forwarded-For is trusted. */
  readonly trustedProxies: ReadonlyArray<IpAddress.Range>
  /** Web origins whose pages may use the service. */
  readonly corsOrigins: ReadonlyArray<string>
  /** Private networks that callers' URLs may reach: for all callers, and for one account by id. */
  readonly egress: {
    readonly allow: ReadonlyArray<IpAddress.Range>
    readonly accounts: ReadonlyMap<string, ReadonlyArray<IpAddress.Range>>
  }
}

const ranges = (texts: ReadonlyArray<string> = []): ReadonlyArray<IpAddress.Range> =>
  texts.map((text) => Result.getOrThrow(IpAddress.range(text)))

export const read = ({ cors, egress, trustedProxies }: typeof EdgeFile.Type): Edge => ({
  trustedProxies: ranges(trustedProxies),
  corsOrigins: cors?.origins ?? [],
  egress: {
    allow: ranges(egress?.allow),
    accounts: new Map(Object.entries(egress?.accounts ?? {}).map(([id, allow]) => [id, ranges(allow)]))
  }
})
