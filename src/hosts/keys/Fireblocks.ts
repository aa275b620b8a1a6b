import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import * as RingKeyLimits from "../../application/keys/RingKeyLimits.js"
import { integer, Name, optional, Secret } from "../fields/FileFields.js"
import { Url } from "./KeyFields.js"
import { type KeyProviderKind, loaded, type Named } from "./KeyProviderKind.js"

const kind = "fireblocks"

const schema = Schema.Struct({
  kind: Schema.Literal(kind),
  name: Name,
  apiKey: Secret,
  secretKey: Secret,
  basePath: optional(Url),
  pollMillis: optional(integer(50, 10_000)),
  timeoutMillis: optional(integer(1_000, 24_000))
})

export interface Options extends Named<typeof kind> {
  readonly apiKey: Redacted.Redacted<string>
  readonly secretKey: Redacted.Redacted<string>
  readonly basePath?: string
  readonly pollMillis?: number
  readonly timeoutMillis?: number
}

/** Fireblocks raw signing (MPC). */
export const fireblocks: KeyProviderKind<typeof schema.Type, typeof schema.Encoded, Options> = {
  schema,
  read: ({ apiKey, basePath, name, pollMillis, secretKey, timeoutMillis }, path, { secret }) => ({
    kind,
    name,
    apiKey: secret(`${path}.apiKey`, apiKey),
    secretKey: secret(`${path}.secretKey`, secretKey),
    ...(basePath !== undefined && { basePath }),
    ...(pollMillis !== undefined && { pollMillis }),
    ...(timeoutMillis !== undefined && { timeoutMillis })
  }),
  open: (options) =>
    loaded(
      kind,
      ["@fireblocks/ts-sdk"],
      () => import("../../adapters/fireblocks/KeyProvider.js"),
      ({ make }) => make(options)
    ),
  // One transaction carries many digests and may wait for an approver: it has all the time there is.
  limits: { attemptMillis: RingKeyLimits.defaults.totalMillis, inFlight: 4 },
  keyType: "MPC",
  help: {
    about: "Fireblocks raw signing (MPC)",
    key: "`vaultAccountId/assetId`",
    page: "docs/signers/fireblocks.md"
  }
}
