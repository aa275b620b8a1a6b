import type * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { Name, optional, Secret } from "../fields/FileFields.js"
import { Url } from "./KeyFields.js"
import { type KeyProviderKind, loaded, type Named } from "./KeyProviderKind.js"

const kind = "aws-kms"

const schema = Schema.Struct({
  kind: Schema.Literal(kind),
  name: Name,
  region: Name,
  endpoint: optional(Url),
  credentials: optional(
    Schema.Struct({ accessKeyId: Secret, secretAccessKey: Secret, sessionToken: optional(Secret) })
  )
})

type Redact = Redacted.Redacted<string>

export interface Options extends Named<typeof kind> {
  readonly region: string
  readonly endpoint?: string
  readonly credentials?: {
    readonly accessKeyId: Redact
    readonly secretAccessKey: Redact
    readonly sessionToken?: Redact
  }
}

/** AWS KMS. */
export const awsKms: KeyProviderKind<typeof schema.Type, typeof schema.Encoded, Options> = {
  schema,
  read: ({ credentials, endpoint, name, region }, path, { secret }) => {
    const options: Options = { kind, name, region, ...(endpoint !== undefined && { endpoint }) }
    if (credentials === undefined) return options
    const { accessKeyId, secretAccessKey, sessionToken } = credentials
    const at = `${path}.credentials`
    return {
      ...options,
      credentials: {
        accessKeyId: secret(`${at}.accessKeyId`, accessKeyId),
        secretAccessKey: secret(`${at}.secretAccessKey`, secretAccessKey),
        ...(sessionToken !== undefined && { sessionToken: secret(`${at}.sessionToken`, sessionToken) })
      }
    }
  },
  open: (options) =>
    loaded(
      kind,
      ["@aws-sdk/client-kms"],
      () => import("../../adapters/aws-kms/KeyProvider.js"),
      ({ make }) => make(options)
    ),
  keyType: "KMS",
  help: { about: "AWS KMS", key: "key id, ARN or alias", page: "docs/signers/aws-kms.md" }
}
