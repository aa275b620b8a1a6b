import * as HttpApi from "@effect/platform/HttpApi"
import * as Context from "effect/Context"
import * as Option from "effect/Option"
import type * as Schema from "effect/Schema"
import { api } from "../../../src/hosts/http/Api.js"
import { Authentication, BodyOptional, Example } from "../../../src/hosts/http/Contract.js"

/** An endpoint as the contract has it, for tests that go through all of them. */
export interface Endpoint {
  readonly name: string
  readonly method: string
  readonly path: string
  readonly withKey: boolean
  readonly bodyOptional: boolean
  readonly payload: Schema.Schema<unknown, unknown> | null
  readonly success: Schema.Schema<unknown, unknown>
  readonly example: unknown
}

export const endpoints: ReadonlyArray<Endpoint> = (() => {
  const all: Array<Endpoint> = []
  HttpApi.reflect(api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint, mergedAnnotations, middleware }) => {
      all.push({
        name: endpoint.name,
        method: endpoint.method,
        path: endpoint.path,
        withKey: [...middleware].some(({ key }) => key === Authentication.key),
        bodyOptional: Option.isSome(Context.getOption(mergedAnnotations, BodyOptional)),
        payload: Option.getOrNull(endpoint.payloadSchema) as Schema.Schema<unknown, unknown> | null,
        success: endpoint.successSchema as Schema.Schema<unknown, unknown>,
        example: Option.getOrUndefined(Context.getOption(endpoint.annotations, Example))
      })
    }
  })
  return all
})()

/** Endpoints that take a JSON body. */
export const posts = endpoints.filter(({ payload }) => payload !== null)
