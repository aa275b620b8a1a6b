import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as Record from "effect/Record"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaParser from "effect/SchemaParser"
import type { Scope } from "../../../application/ports/Tenants.js"
import * as Contract from "../contract/EndpointAnnotations.js"
import type { Page, Pages } from "../message/Pages.js"
import * as Decode from "./Decode.js"

/** One method of one path, with the contract's annotations. */
export interface Endpoint {
  readonly name: string
  readonly path: string
  readonly needsKey: boolean
  /** Scope that the key needs. */
  readonly scope: Scope
  /** Exempt from the limit of keyless callers. */
  readonly unlimited: boolean
  /** Null: the method has no body. */
  readonly decode: Decode.Decoder | null
  /** Decodes the query; null: the method has no parameters. */
  readonly query: Decode.Decoder<object> | null
  readonly bodyOptional: boolean
  readonly idempotent: boolean
  readonly versioned: boolean
  /** Bounds in place of the service's; null: none. */
  readonly bounds: Contract.BodyBounds["Service"] | null
  /** The body member that may be a long list when the caller does not wait; null: none. */
  readonly longList: string | null
  readonly streams: boolean
  readonly encode: (answer: unknown) => Result.Result<unknown, SchemaIssue.Issue>
}

/** The endpoints and pages of a path, by method. */
export type Methods = ReadonlyMap<string, Endpoint | Page>

export interface Place {
  readonly methods: Methods
  readonly params: Readonly<Record<string, string>>
}

/** Looks up a path as written; only its parameters are decoded. */
export type Endpoints = (path: string) => Place | undefined

/**
 * Finds endpoints and pages by path, with all methods of each path. The server enters endpoints through this lookup:
 * `HttpRouter` and `HttpApiBuilder` repeat it and copy the context with all services twice, which took a quarter of the
 * time of a small request.
 */
export const make = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  pages: Pages
): Endpoints => {
  const places = new Map<string, Map<string, Endpoint | Page>>(
    [...pages].map(([path, page]) => [path, new Map([["GET", page]])])
  )
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, mergedAnnotations, middleware }) => {
      const needsKey = [...middleware].some(({ key }) => key === Contract.Authentication.key)
      const made = endpointOf(endpoint, mergedAnnotations, needsKey)
      places.set(made.path, (places.get(made.path) ?? new Map()).set(endpoint.method, made))
    }
  })
  const fixed = new Map<string, Place>()
  const shapes: Array<{ readonly methods: Methods; readonly shape: RegExp }> = []
  for (const [path, methods] of places)
    if (path.includes(":"))
      shapes.push({ methods, shape: new RegExp(`^${path.replace(/:([A-Za-z]+)/, "(?<$1>[^/;#]+)")}$`) })
    else fixed.set(path, { methods, params: {} })
  return (path) => {
    const place = fixed.get(path)
    if (place !== undefined) return place
    for (const { methods, shape } of shapes) {
      const { groups } = shape.exec(path) ?? {}
      if (groups === undefined) continue
      const params = Result.try(() => Record.map(groups, decodeURIComponent))
      // A malformed percent-encoding matches no path.
      return Result.isSuccess(params) ? { methods, params: params.success } : undefined
    }
    return undefined
  }
}

const endpointOf = (
  endpoint: HttpApiEndpoint.Top,
  annotations: Context.Context<never>,
  needsKey: boolean
): Endpoint => {
  const annotation = <T, A>(tag: Context.Key<T, A>): A | undefined => Context.getOrUndefined(annotations, tag)
  const [payload] = endpoint.payload.values()
  const [success] = endpoint.success
  return {
    name: endpoint.identifier,
    path: endpoint.path,
    needsKey,
    scope: annotation(Contract.RequiredScope) ?? "read",
    unlimited: annotation(Contract.Unlimited) ?? false,
    decode: payload === undefined ? null : Decode.decoder(payload.schemas[0] as Schema.Codec<unknown>),
    query: endpoint.query === undefined ? null : Decode.decoder(endpoint.query as Schema.Codec<object>),
    bodyOptional: annotation(Contract.BodyOptional) ?? false,
    idempotent: annotation(Contract.Idempotent) ?? false,
    versioned: annotation(Contract.Versioned) ?? false,
    bounds: annotation(Contract.BodyBounds) ?? null,
    longList: annotation(Contract.LongList) ?? null,
    streams: annotation(Contract.Streamed) ?? false,
    encode: SchemaParser.encodeUnknownResult(success as Schema.Codec<unknown>)
  }
}
