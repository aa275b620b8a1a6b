import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import { api } from "../../../src/hosts/http/contract/Api.js"
import {
  Authentication,
  BodyOptional,
  Example,
  Idempotent
} from "../../../src/hosts/http/contract/EndpointAnnotations.js"

/** An endpoint of the contract, for tests that run over all endpoints. */
export interface Endpoint {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly withKey: boolean
  readonly bodyOptional: boolean
  readonly idempotent: boolean
  readonly payload: Schema.Codec<unknown, unknown> | null
  readonly success: Schema.Codec<unknown, unknown>
  /** Example of the body, or of the parameters of an endpoint without a body. */
  readonly example: unknown
  /** The path of a request, with the parameters of the example. */
  readonly filled: string
}

export const endpoints: ReadonlyArray<Endpoint> = (() => {
  const all: Array<Endpoint> = []
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, mergedAnnotations, middleware }) => {
      const [payload] = endpoint.payload.values()
      const [success] = endpoint.success
      const example = Option.getOrUndefined(Context.getOption(endpoint.annotations, Example))
      const named = [...endpoint.path.matchAll(/:([A-Za-z]+)/g)].map(([, name]) => String(name))
      const body = Object.fromEntries(
        Object.entries(Object(example)).filter(([name]) => !named.includes(name))
      )
      all.push({
        name: endpoint.identifier,
        method: endpoint.method,
        path: endpoint.path,
        withKey: [...middleware].some(({ key }) => key === Authentication.key),
        bodyOptional: Option.isSome(Context.getOption(mergedAnnotations, BodyOptional)),
        idempotent: Option.isSome(Context.getOption(mergedAnnotations, Idempotent)),
        payload: payload === undefined ? null : (payload.schemas[0] as Schema.Codec<unknown, unknown>),
        success: success as Schema.Codec<unknown, unknown>,
        example: payload !== undefined && named.length > 0 ? body : example,
        filled: endpoint.path.replace(/:([A-Za-z]+)/g, (_, name: string) => String(Object(example)[name]))
      })
    }
  })
  return all
})()

/** The endpoint's path with example parameters. */
export const exampleOf = ({ filled }: Endpoint): string => filled

/** Endpoints that take a JSON body by POST, each with the path of a request. */
export const posts = endpoints
  .filter(({ method, payload }) => method === "POST" && payload !== null)
  .map((endpoint) => ({ ...endpoint, path: endpoint.filled }))
