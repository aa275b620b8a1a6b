import { describe, expect, expectTypeOf, it } from "vitest"
import type * as ExecuteOperations from "../../src/application/endpoints/operations/ExecuteOperations.js"
import * as Client from "../../src/client/Client.js"
import type * as Promises from "../../src/hosts/library/Promise.js"

const json = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify(body), { status, headers })

const clientOf = (...answers: ReadonlyArray<Response>): Client.Client => {
  const left = [...answers]
  return Client.make({
    baseUrl: "https://castellan.example",
    apiKey: "key",
    fetch: () => Promise.resolve(left.shift() ?? json(500, {}))
  })
}

const signer = { clientId: "c", versionId: "1" }
const settings: Client.Settings = { rpc: "https://node.example", entryPoint: "0x1", signer }
const operation: Client.Operation = { wallet: "0x2", walletCustody: 1, to: "0x3", funcSignature: "f()" }
const writing = { operations: [operation], settings }

const done: Client.Outcome = { userOpHash: "0x4", success: true, error: null, result: null, txHash: "0x5" }
const failed: Client.Outcome = { ...done, success: false, error: "reverted", txHash: null }
const answer = { status: 4, txHash: "0x5", returnData: [{ "0": done }, { "1": failed }] }

describe("an answer with returnData", () => {
  it("an answer with returnData has its elements in outcomes too, in their order", async () => {
    const result: Client.ExecuteResult = await clientOf(json(200, answer)).execute(writing)
    expect(result).toEqual({ ...answer, outcomes: [done, failed] })
    expect(result.outcomes.map(({ error }) => error)).toEqual([null, "reverted"])
    expectTypeOf(result.outcomes).toEqualTypeOf<ReadonlyArray<Client.Outcome>>()
  })

  it("an answer with returnData has no element that equals its only member", async () => {
    const result = await clientOf(json(200, answer)).execute(writing)
    expect(result.returnData[1]?.[1]?.error).toBe("reverted")
    // @ts-expect-error: it is in returnData[1][1]
    expect(result.returnData[1]?.error).toBeUndefined()
    // @ts-expect-error: the same of /create
    expectTypeOf<Client.CreateResult["returnData"][number]>().toHaveProperty("wallet")
    expectTypeOf<Client.CreateResult["outcomes"][number]["wallet"]>().toBeString()
  })

  it("an answer with returnData has no other member in the library's type either", () => {
    type Element = ExecuteOperations.Response["returnData"][number]
    expectTypeOf<Element[0]>().toEqualTypeOf<ExecuteOperations.Response["returnData"][0][0]>()
    // @ts-expect-error: it is in returnData[0][0]
    expectTypeOf<Element>().toHaveProperty("error")
  })

  it("an answer from waitFor has outcomes, accounts for /create", async () => {
    const created = { status: 1, returnData: [{ "0": { salt: "bob", wallet: "0x6" } }] }
    const client = clientOf(json(200, { state: "final", httpStatus: 200, answer: created }))
    const { outcomes } = await client.waitFor<"create">("r1")
    expect(outcomes).toEqual([{ salt: "bob", wallet: "0x6" }])
  })
})

describe("an asynchronous write", () => {
  it("an asynchronous write returns the argument of waitFor", async () => {
    const client = clientOf(json(202, { requestId: "r1", state: "pending" }))
    const accepted = await client.execute(writing, { async: true })
    expectTypeOf(accepted).toEqualTypeOf<Client.Accepted<Client.ExecuteResult>>()
    // @ts-expect-error: nothing is known of its operations yet
    expect(accepted.outcomes).toBeUndefined()
    expect(accepted.requestId).toBe("r1")
  })

  it("an asynchronous write that is final immediately is awaited by its requestId too", async () => {
    const whole = { ...answer, outcomes: [done, failed] }
    for (const headers of [{ "x-request-id": "r2" }, {}]) {
      const client = clientOf(json(200, answer, headers))
      const accepted = await client.execute(writing, { async: true, idempotencyKey: "mine" })
      expect(accepted).toEqual({ requestId: headers["x-request-id"] ?? "mine", answer: whole })
      expect(await client.waitFor<"execute">(accepted.requestId)).toEqual(whole)
    }
  })

  it("the type of a write takes async, or only an idempotency key", () => {
    type Execute = Client.Client["execute"]
    expectTypeOf<Execute>().toBeCallableWith(writing, { async: true })
    expectTypeOf<Execute>().toBeCallableWith(writing, { idempotencyKey: "k" })
  })
})

it("castellan/promise has the same types", () => {
  expectTypeOf<Promises.Settings>().toEqualTypeOf<Client.Settings>()
  expectTypeOf<Promises.Account>().toEqualTypeOf<Client.Account>()
  expectTypeOf<Promises.Operation>().toEqualTypeOf<Client.Operation>()
  expectTypeOf<Promises.Outcome>().toEqualTypeOf<Client.Outcome>()
  expectTypeOf<Promises.CreateResult>().toEqualTypeOf<Client.CreateResult>()
  expectTypeOf<Awaited<ReturnType<Promises.Castellan["execute"]>>>().toEqualTypeOf<Promises.ExecuteResult>()
})
