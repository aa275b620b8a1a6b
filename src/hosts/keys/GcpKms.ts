import * as Schema from "effect/Schema"
import { Name, optional, Text } from "../fields/FileFields.js"
import { Url } from "./KeyFields.js"
import { type KeyProviderKind, loaded, type Named } from "./KeyProviderKind.js"

const kind = "gcp-kms"

const schema = Schema.Struct({
  kind: Schema.Literal(kind),
  name: Name,
  endpoint: optional(Url),
  credentialsFile: optional(Text)
})

export interface Options extends Named<typeof kind> {
  readonly endpoint?: {
    readonly host: string
    readonly port: number
    readonly protocol: "http" | "https"
  }
  readonly credentialsFile?: string
}

const endpointOf = (url: string) => {
  const { hostname, port, protocol } = new URL(url)
  const plain = protocol === "http:"
  return {
    host: hostname,
    port: port === "" ? (plain ? 80 : 443) : Number(port),
    protocol: plain ? ("http" as const) : ("https" as const)
  }
}

/** Google Cloud KMS and Cloud HSM. */
export const gcpKms: KeyProviderKind<typeof schema.Type, typeof schema.Encoded, Options> = {
  schema,
  read: ({ credentialsFile, endpoint, name }, _, reader) => ({
    kind,
    name,
    ...(endpoint !== undefined && { endpoint: endpointOf(endpoint) }),
    ...(credentialsFile !== undefined && { credentialsFile: reader.path(credentialsFile) })
  }),
  open: (options) =>
    loaded(
      kind,
      ["@google-cloud/kms"],
      () => import("../../adapters/gcp-kms/KeyProvider.js"),
      ({ make }) => make(options)
    ),
  keyType: "KMS",
  help: {
    about: "Google Cloud KMS and Cloud HSM",
    key: "resource name of the key version",
    page: "docs/signers/gcp-kms.md"
  }
}
