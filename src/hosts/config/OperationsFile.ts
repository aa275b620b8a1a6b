import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as HostPattern from "../../domain/net/HostPattern.js"
import { integer, Name, optional, type ReadSecret, Secret, says, urlReader } from "../fields/FileFields.js"

/** Fields of the configuration file about what the operator sees. */
export const operationsFields = {
  admin: optional(
    Schema.Struct({
      host: optional(Name),
      port: integer(0, 65_535),
      token: Secret,
      hosts: optional(Schema.Array(Name))
    }).annotate(says('expected {"port": 0 to 65535, "token": Secret} with or without "host" and "hosts"'))
  ),
  telemetry: optional(
    Schema.Struct({
      url: Secret,
      authorization: optional(Secret),
      intervalMillis: optional(integer(100, 600_000))
    }).annotate(
      says(
        'expected {"url": Secret} of an OTLP collector, with or without "authorization" and "intervalMillis"'
      )
    )
  )
}

/** Where the operator's port is, unless told. */
export const adminHost = "127.0.0.1"

const OperationsFile = Schema.Struct(operationsFields)

/** What the operator sees, and where. */
export interface Operations {
  /** The operator's own port; null: none. */
  readonly admin: {
    readonly host: string
    readonly port: number
    readonly token: Redacted.Redacted<string>
    /** Hosts as which it may be asked for, beside loopback's. */
    readonly hosts: ReadonlyArray<HostPattern.HostPattern>
  } | null
  /** A collector of OpenTelemetry; null: none. */
  readonly telemetry: {
    readonly url: Redacted.Redacted<string>
    readonly authorization: Redacted.Redacted<string> | null
    readonly intervalMillis: number
  } | null
}

/** One that no request can match is a fault in it. */
const patterns = (
  texts: ReadonlyArray<string> = [],
  say: (path: string, message: string) => void
): ReadonlyArray<HostPattern.HostPattern> =>
  texts.flatMap((text, index) =>
    Result.match(HostPattern.parse(text), {
      onFailure: (message) => {
        say(`admin.hosts[${index}]`, `${JSON.stringify(text)} matches no Host header: ${message}`)
        return []
      },
      onSuccess: (pattern) => [pattern]
    })
  )

export const read = (
  { admin, telemetry }: typeof OperationsFile.Type,
  secret: ReadSecret,
  say: (path: string, message: string) => void
): Operations => ({
  admin:
    admin === undefined
      ? null
      : {
          host: admin.host ?? adminHost,
          port: admin.port,
          token: secret("admin.token", admin.token),
          hosts: patterns(admin.hosts, say)
        },
  telemetry:
    telemetry === undefined
      ? null
      : {
          url: urlReader(secret, say)("telemetry.url", telemetry.url),
          authorization:
            telemetry.authorization === undefined
              ? null
              : secret("telemetry.authorization", telemetry.authorization),
          intervalMillis: telemetry.intervalMillis ?? 10_000
        }
})
