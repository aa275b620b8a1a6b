import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import type * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import type * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import type * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { Scope } from "../../../application/ports/Tenants.js"
import {
  BodyOptional,
  Idempotent,
  LongList,
  RequiredScope,
  Streamed,
  Unlimited
} from "../contract/EndpointAnnotations.js"
import type { Problem } from "../message/ErrorEnvelope.js"
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
  /** Null: the method takes no body. Of a large one the first place alone is named that does not fit. */
  readonly decode: ((body: unknown, isLarge: boolean) => Result.Result<unknown, Problem>) | null
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

/** The endpoints of a path, by method. */
export type Place = ReadonlyMap<string, Endpoint>

export interface Endpoints {
  readonly find: (path: string) => Place | undefined
  /** By the endpoint's name. */
  readonly named: (name: string) => Endpoint
}

/** A path has one parameter, a whole segment of it (`/requests/:requestId/events`). */
const parameter = /:[A-Za-z]+/

const isSegment = (text: string | undefined): boolean => {
  try {
    return text !== undefined && decodeURIComponent(text) !== ""
  } catch {
    return false
  }
}

/** What the contract has where: also what it has under another method. */
export const make = <Id extends string, Groups extends HttpApiGroup.Constraint>(
  api: HttpApi.HttpApi<Id, Groups>
): Endpoints => {
  const places = new Map<string, Map<string, Endpoint>>()
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
    .filter(([path]) => parameter.test(path))
    .map(([path, place]) => ({ place, shape: new RegExp(`^${path.replace(parameter, "([^/;#]+)")}$`) }))
  return {
    find: (path) => {
      const place = path.includes(":") ? undefined : places.get(path)
      return place ?? shapes.find(({ shape }) => isSegment(shape.exec(path)?.[1]))?.place
    },
    named: (name) => names.get(name) as Endpoint
  }
}

const endpointOf = (endpoint: HttpApiEndpoint.Top, annotations: Context.Context<never>): Endpoint => {
  const said = <T, A>(tag: Context.Key<T, A>): A | undefined => Context.getOrUndefined(annotations, tag)
  const [payload] = endpoint.payload.values()
  return {
    name: endpoint.identifier,
    path: endpoint.path,
    scope: said(RequiredScope) ?? "read",
    unlimited: said(Unlimited) !== undefined,
    decode:
      payload === undefined ? null : Decode.decoder(payload.schemas[0] as Schema.Codec<unknown, unknown>),
    query: endpoint.query ?? null,
    bodyOptional: said(BodyOptional) !== undefined,
    idempotent: said(Idempotent) !== undefined,
    longList: said(LongList) ?? null,
    streams: said(Streamed) !== undefined
  }
}

/** HEAD is GET without the body, which the transport leaves out. */
export const of = (place: Place, method: string): Endpoint | undefined =>
  place.get(method) ?? (method === "HEAD" ? place.get("GET") : undefined)
