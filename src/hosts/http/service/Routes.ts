import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import type { Scope } from "../../../application/ports/Tenants.js"
import * as Json from "../../../domain/json/Json.js"
import {
  Authentication,
  BodyOptional,
  Idempotent,
  LongList,
  RequiredScope,
  Streamed,
  TextAnswer,
  Unlimited
} from "../contract/EndpointAnnotations.js"
import { type Problem, problem } from "../message/ErrorEnvelope.js"
import * as Decode from "./Decode.js"

/** One method of one path, with all that the contract says of it made ready to run. */
export interface Route {
  /** The endpoint's name in the contract. */
  readonly name: string
  readonly path: string
  /** Null: no key needed. */
  readonly scope: Scope | null
  /** Strangers are not counted here. */
  readonly unlimited: boolean
  /** Null: the method takes no body. Of a large one the first place alone is named that does not fit. */
  readonly decode: ((body: unknown, isLarge: boolean) => Result.Result<unknown, Problem>) | null
  /** The parameters of a query, as it stands in the target. Null: the endpoint takes none. */
  readonly query: ((query: string) => Result.Result<object, Problem>) | null
  readonly bodyOptional: boolean
  /** Whether it takes an idempotency key. */
  readonly idempotent: boolean
  /** The member of its body that may be a long list where the caller does not wait; null: none. */
  readonly longList: string | null
  /** Whether it is answered with events as they come. */
  readonly streams: boolean
  /** Success as text. A failure: it does not fit the contract, which is a defect; the text names the places only. */
  readonly encode: (success: unknown) => Result.Result<string, string>
  readonly contentType: string
}

/** Where a path leads: the methods there, and what the path itself says. */
export interface Place {
  readonly methods: ReadonlyMap<string, Route>
  /** Percent-decoded. */
  readonly params: Readonly<Record<string, string>>
}

export interface Table {
  readonly find: (path: string) => Place | undefined
}

/** A schema of the contract, as of which none needs a service. */
type Plain = Schema.Codec<unknown, unknown>

const queryOf = (params: Schema.Top): Route["query"] => {
  const decode = Decode.decoder(params as Schema.Codec<object, unknown>)
  return (query) => {
    const pairs = [...new URLSearchParams(query)]
    const names = pairs.map(([name]) => name)
    const twice = names.find((name, index) => names.indexOf(name) < index)
    return twice === undefined
      ? decode(Object.fromEntries(pairs))
      : Result.fail(problem("invalid_request", [{ path: twice, message: "expected it once in the query" }]))
  }
}

const places = SchemaIssue.makeFormatterDefault()

const textOf = (schema: Plain, print: (encoded: unknown) => string): Route["encode"] => {
  const encode = SchemaParser.encodeUnknownResult(schema)
  return (success) => Result.mapBoth(encode(success), { onFailure: places, onSuccess: print })
}

/** A path has one parameter, a whole segment of it (`/requests/:requestId/events`). */
const parameter = /^(.*\/):([A-Za-z]+)((?:\/[A-Za-z]+)*)$/

/** A segment of a path, percent-decoded once; null: it is empty or malformed, and leads nowhere. */
const segment = (text: string): string | null =>
  text === "" || text.includes("/")
    ? null
    : Result.getOrNull(Result.try({ try: () => decodeURIComponent(text), catch: () => null }))

/** The routes of the contract. */
export const make = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>
): Table => {
  const table = new Map<string, Map<string, Route>>()
  const add = (method: string, route: Route): void => {
    const methods = table.get(route.path) ?? new Map<string, Route>()
    table.set(route.path, methods.set(method, route))
  }
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, mergedAnnotations, middleware }) => {
      const [payload] = endpoint.payload.values()
      const body = payload?.schemas[0] as Plain | undefined
      const [success = HttpApiSchema.NoContent] = endpoint.success
      const text = Option.getOrNull(Context.getOption(mergedAnnotations, TextAnswer))
      add(endpoint.method, {
        name: endpoint.identifier,
        path: endpoint.path,
        scope: [...middleware].some(({ key }) => key === Authentication.key)
          ? Option.getOrElse(Context.getOption(mergedAnnotations, RequiredScope), () => "read" as const)
          : null,
        unlimited: Option.isSome(Context.getOption(mergedAnnotations, Unlimited)),
        decode: body === undefined ? null : Decode.decoder(body),
        query: endpoint.query === undefined ? null : queryOf(endpoint.query),
        bodyOptional: Option.isSome(Context.getOption(mergedAnnotations, BodyOptional)),
        idempotent: Option.isSome(Context.getOption(mergedAnnotations, Idempotent)),
        longList: Option.getOrNull(Context.getOption(mergedAnnotations, LongList)),
        streams: Option.isSome(Context.getOption(mergedAnnotations, Streamed)),
        encode: textOf(success as Plain, text === null ? Json.print : String),
        contentType: text ?? "application/json"
      })
    }
  })
  const prefixes = [...table].flatMap(([path, methods]) => {
    const [, prefix, name, suffix] = parameter.exec(path) ?? []
    return prefix === undefined || name === undefined || suffix === undefined
      ? []
      : [{ prefix, name, suffix, methods }]
  })
  return {
    find: (path) => {
      const methods = table.get(path)
      if (methods !== undefined && !parameter.test(path)) return { methods, params: {} }
      for (const { methods, name, prefix, suffix } of prefixes) {
        const isHere = path.startsWith(prefix) && path.endsWith(suffix)
        const value = isHere ? segment(path.slice(prefix.length, path.length - suffix.length)) : null
        if (value !== null) return { methods, params: { [name]: value } }
      }
      return undefined
    }
  }
}

/** HEAD is GET without the body, which the transport leaves out. */
export const routeOf = ({ methods }: Place, method: string): Route | undefined =>
  methods.get(method) ?? (method === "HEAD" ? methods.get("GET") : undefined)

/** The path of a request target; a proxy's absolute form has scheme and host in front. */
export const pathOf = (target: string): string =>
  (target.startsWith("/") ? target : target.replace(/^https?:\/\/[^/?]*/i, "")).replace(/\?.*$/s, "")
