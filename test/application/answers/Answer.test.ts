import { Effect, Result, Schema } from "effect"
import { describe, expect, it } from "vitest"
import * as Answer from "../../../src/application/answers/Answer.js"
import { unprocessable } from "../../../src/application/failures/Failure.js"
import * as Reasons from "../../../src/application/failures/Reasons.js"

const Response = Schema.Struct({ done: Schema.Int })

const failure = unprocessable(
  "insufficient_funds",
  [{ path: "operations[0]", message: Reasons.known("it lacks 7 wei"), missing: "7" }],
  {
    message: Reasons.ofCode("insufficient_funds"),
    extra: { returnData: [{ "0": { success: false } }] }
  }
)

describe("a stored answer", () => {
  it("repeats a success unchanged", async () => {
    const stored = await Effect.runPromise(Answer.encode(Response, Result.succeed({ done: 3 })))
    expect(await Effect.runPromise(Answer.decode(Response, stored))).toEqual({ done: 3 })
    expect(await Effect.runPromise(Answer.toHttpResponse(stored, "r"))).toEqual({
      httpStatus: 200,
      answer: { done: 3 }
    })
  })

  it("repeats a refusal unchanged, to a retry and to a read of the request", async () => {
    const stored = await Effect.runPromise(Answer.encode(Response, Result.fail(failure)))
    const again = await Effect.runPromise(Effect.result(Answer.decode(Response, stored)))
    expect(again).toEqual(Result.fail(failure))
    expect(await Effect.runPromise(Answer.toHttpResponse(stored, "r"))).toEqual({
      httpStatus: 422,
      answer: {
        error: "insufficient funds",
        code: "insufficient_funds",
        requestId: "r",
        details: failure.details,
        returnData: [{ "0": { success: false } }]
      }
    })
  })

  it("is a refusal even with a code unknown to this version", async () => {
    const stored = JSON.stringify({ failure: { code: "of_old", message: "no", details: [], extra: {} } })
    const again = await Effect.runPromise(Effect.result(Answer.decode(Response, stored)))
    expect(again).toMatchObject({ _tag: "Failure", failure: { code: "execution_failed", message: "no" } })
  })

  it("decoding malformed stored JSON dies", async () => {
    for (const text of ["", "{}", "{}x", "[]", "null", '"done"'])
      expect((await Effect.runPromiseExit(Answer.decode(Response, text)))._tag).toBe("Failure")
  })
})
