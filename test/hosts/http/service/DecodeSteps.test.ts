import * as ParseResult from "effect/ParseResult"
import * as Result from "effect/Result"
import * as SchemaParser from "effect/SchemaParser"
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { finish } from "../../../../src/domain/primitives/Steps.js"
import * as DecodeSteps from "../../../../src/hosts/http/service/DecodeSteps.js"
import * as Bodies from "../../../support/http/Bodies.js"
import { posts } from "../../../support/http/Contract.js"
import * as MemoryService from "../../../support/http/MemoryService.js"

const bodies = Bodies.at(MemoryService.place)

const parsed = (body: Buffer): unknown =>
  Result.getOrElse(
    Result.try((): unknown => JSON.parse(body.toString())),
    () => null
  )

describe("a body that is judged in steps", () => {
  it.each(posts)("of $path is decoded, or refused for the same first place, as in one go", (endpoint) => {
    const { payload } = endpoint
    if (payload === null) throw new Error("it takes no body")
    const inSteps = DecodeSteps.decoder(payload)
    const inOneGo = SchemaParser.decodeUnknownResult(payload, { errors: "first", onExcessProperty: "error" })
    const told = ParseResult.ArrayFormatter.formatIssueSync
    const sides = { right: 0, left: 0 }
    const requests = fc.sample(bodies.requests([endpoint], "key"), { numRuns: 400, seed: 1 })
    for (const { body } of requests) {
      const value = parsed(body)
      const [steps, whole] = [finish(inSteps(value)), inOneGo(value)]
      sides[Result.isSuccess(whole) ? "right" : "left"] += 1
      expect(Result.mapError(steps, told)).toEqual(Result.mapError(whole, told))
    }
    expect(Math.min(sides.right, sides.left)).toBeGreaterThan(20)
  })
})
