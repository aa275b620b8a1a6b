import type * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as HostPattern from "../../domain/net/HostPattern.js"
import { integer, Name, optional, type ReadSecret, Secret, says, urlReader } from "../fields/FileFields.js"

/** Configuration fields about operation and monitoring. */
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

/** Default host of the operator's port. */
export const adminHost = "127.0.0.1"

const OperationsFile = Schema.Struct(operationsFields)

/** Operation and monitoring of the service. */
export interface Operations {
  /** The operator's port; null: none. */
  readonly admin: {
    readonly host: string
    readonly port: number
    readonly token: Redacted.Redacted<string>
    /** Allowed Host names in addition to loopback's. */
    readonly hosts: ReadonlyArray<HostPattern.HostPattern>
  } | null
  /** An OpenTelemetry collector; null: none. */
  readonly telemetry: {
    readonly url: Redacted.Redacted<string>
    readonly authorization: Redacted.Redacted<string> | null
    readonly intervalMillis: number
  } | null
}

/** Reports a pattern that no request can match. */
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
