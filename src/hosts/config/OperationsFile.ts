import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { Hook } from "../../application/policies/DecisionHook.js"
import * as HostPattern from "../../domain/net/HostPattern.js"
import { integer, Name, optional, type ReadSecret, Secret, says, urlReader } from "./FileFields.js"

/** Configuration fields about operation and monitoring. */
export const operationsFields = {
  decisionHook: optional(
    Schema.Struct({
      url: Secret,
      secret: Secret,
      timeoutMillis: optional(integer(100, 10_000)),
      on: optional(Schema.Literals(["all", "sponsored", "payments"])),
      onFailure: optional(Schema.Literals(["refuse"]))
    }).annotate(
      says(
        'expected {"url": Secret, "secret": Secret} with or without "timeoutMillis" (100 to 10000), "on" ("all", "sponsored" or "payments") and "onFailure" ("refuse")'
      )
    )
  ),
  admin: optional(
    Schema.Struct({
      host: optional(Name),
      port: integer(0, 65_535),
      token: optional(Secret),
      operators: optional(Schema.Array(Schema.Struct({ name: Name, token: Secret }))),
      hosts: optional(Schema.Array(Name))
    }).annotate(
      says(
        'expected {"port": 0 to 65535} with "token": Secret or "operators": [{"name", "token"}], with or without "host" and "hosts"'
      )
    )
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

/** A person or a program that operates the service. */
export interface Operator {
  /** The audit log names the operator so. */
  readonly name: string
  readonly token: Redacted.Redacted<string>
}

/** Operation and monitoring of the service. */
export interface Operations {
  /** Asked before requests are accepted; null: none. */
  readonly decisionHook: Hook | null
  /** The operator's port; null: none. */
  readonly admin: {
    readonly host: string
    readonly port: number
    /** Operators, each with their own token; never empty. */
    readonly operators: ReadonlyArray<Operator>
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

/** Name of the operator with `admin.token`. */
const unnamed = "operator"

/** Reports names and tokens that several operators share. */
const operatorsOf = (
  { operators = [], token }: NonNullable<(typeof OperationsFile.Type)["admin"]>,
  secret: ReadSecret,
  say: (path: string, message: string) => void
): ReadonlyArray<Operator> => {
  const all = [
    ...(token === undefined
      ? []
      : [{ path: "admin.token", name: unnamed, token: secret("admin.token", token) }]),
    ...operators.map(({ name, token }, index) => ({
      path: `admin.operators[${index}]`,
      name,
      token: secret(`admin.operators[${index}].token`, token)
    }))
  ]
  if (all.length === 0) say("admin.operators", "no operator can sign in; set one, or admin.token")
  all.forEach((each, at) => {
    const before = all.slice(0, at)
    if (before.some(({ name }) => name === each.name))
      say(`${each.path}.name`, `${JSON.stringify(each.name)} names another operator too`)
    if (before.some(({ token }) => Redacted.value(token) === Redacted.value(each.token)))
      say(each.path, "another operator has this token")
  })
  return all.map(({ name, token }) => ({ name, token }))
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

/** At least 24 bytes, as Standard Webhooks asks. */
const hookSecret = /^whsec_(?:[A-Za-z0-9+/]{4}){8,}(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/

const hookOf = (
  {
    on = "all",
    secret,
    timeoutMillis = 2_000,
    url
  }: NonNullable<(typeof OperationsFile.Type)["decisionHook"]>,
  read: ReadSecret,
  say: (path: string, message: string) => void
): Hook => {
  const key = read("decisionHook.secret", secret)
  if (Redacted.value(key) !== "" && !hookSecret.test(Redacted.value(key)))
    say("decisionHook.secret", "expected whsec_ and at least 24 bytes in base64")
  return { url: urlReader(read, say)("decisionHook.url", url), secret: key, timeoutMillis, on }
}

export const read = (
  { admin, decisionHook, telemetry }: typeof OperationsFile.Type,
  secret: ReadSecret,
  say: (path: string, message: string) => void
): Operations => ({
  decisionHook: decisionHook === undefined ? null : hookOf(decisionHook, secret, say),
  admin:
    admin === undefined
      ? null
      : {
          host: admin.host ?? adminHost,
          port: admin.port,
          operators: operatorsOf(admin, secret, say),
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
