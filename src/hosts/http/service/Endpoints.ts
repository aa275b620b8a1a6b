import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import type * as Schema from "effect/Schema"
import type { Scope } from "../../../application/ports/Tenants.js"
import * as Contract from "../contract/EndpointAnnotations.js"
import * as Decode from "./Decode.js"

/** One method of one path, with what the contract's annotations say of it. */
export interface Endpoint {
  /** Its name in the contract. */
  readonly name: string
  readonly path: string
  /** Of the key, where it needs one. */
  readonly scope: Scope
  /** Strangers are not counted here. */
  readonly unlimited: boolean
  /** Null: the method takes no body. */
  readonly decode: Decode.Decoder | null
  /** The parameters of its query; null: it takes none. */
  readonly query: Schema.Top | null
  readonly bodyOptional: boolean
  /** Whether it takes an idempotency key. */
  readonly idempotent: boolean
  /** The member of its body that may be a long list where the caller does not wait; null: none. */
  readonly longList: string | null
  /** Whether it is answered with events as they come. */
  readonly streams: boolean
}

/** What a path has, by method; null: a page that is no endpoint. */
export type Place = ReadonlyMap<string, Endpoint | null>

export interface Endpoints {
  /** Paths are as they are written: nothing is decoded in them but their parameters. */
  readonly find: (path: string) => Place | undefined
  /** By the endpoint's name. */
  readonly named: (name: string) => Endpoint
}

/** What the contract has where, and pages beside it: also what is there under another method. */
export const make = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>,
  pages: Iterable<string>
): Endpoints => {
  const places = new Map<string, Map<string, Endpoint | null>>()
  const names = new Map<string, Endpoint>()
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, mergedAnnotations }) => {
      const made = endpointOf(endpoint, mergedAnnotations)
      names.set(made.name, made)
      places.set(made.path, (places.get(made.path) ?? new Map()).set(endpoint.method, made))
    }
  })
  const shapes = [...places]
    .filter(([path]) => path.includes(":"))
    .map(([path, place]) => ({ place, shape: new RegExp(`^${path.replace(/:[A-Za-z]+/, "[^/;#]+")}$`) }))
  for (const path of pages) places.set(path, new Map([["GET", null]]))
  return {
    find: (path) => places.get(path) ?? shapes.find(({ shape }) => shape.test(path))?.place,
    named: (name) => names.get(name) as Endpoint
  }
}

const endpointOf = (endpoint: HttpApiEndpoint.Top, annotations: Context.Context<never>): Endpoint => {
  const said = <T, A>(tag: Context.Key<T, A>): A | undefined => Context.getOrUndefined(annotations, tag)
  const [payload] = endpoint.payload.values()
  return {
    name: endpoint.identifier,
    path: endpoint.path,
    scope: said(Contract.RequiredScope) ?? "read",
    unlimited: said(Contract.Unlimited) ?? false,
    decode: payload === undefined ? null : Decode.decoder(payload.schemas[0] as Schema.Codec<unknown>),
    query: endpoint.query ?? null,
    bodyOptional: said(Contract.BodyOptional) ?? false,
    idempotent: said(Contract.Idempotent) ?? false,
    longList: said(Contract.LongList) ?? null,
    streams: said(Contract.Streamed) ?? false
  }
}
