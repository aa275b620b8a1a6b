import { describe, expect, it } from "vitest"
import * as OpenRequests from "../../../src/application/intake/OpenRequests.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"

const account = (name: string) => name as AccountId
const [alice, bob] = [account("alice"), account("bob")]

const bounds: OpenRequests.Bounds = {
  requests: 4,
  elements: 40,
  requestsPerAccount: 2,
  elementsPerAccount: 20
}

const entry = (requestId: string, accountId = alice, elements = 1): OpenRequests.Entry => ({
  requestId,
  accountId,
  elements
})

const codes = (open: OpenRequests.OpenRequests) =>
  [alice, bob].map((accountId) => open.refusal(accountId)?.code ?? "room")

describe("open requests", () => {
  it("are bounded per account, and in total by number", () => {
    const open = OpenRequests.make(bounds)
    open.begin(entry("1"))
    expect(codes(open)).toEqual(["room", "room"])
    open.begin(entry("2"))
    expect(codes(open)).toEqual(["rate_limited", "room"])
    open.begin(entry("3", bob))
    open.begin(entry("4", account("carol")))
    expect(codes(open)).toEqual(["overloaded", "overloaded"])
    expect(open.refusal(bob)).toMatchObject({ _tag: "Unavailable", retryAfterSeconds: 5 })
  })

  it("are bounded by elements, but a request larger than the remaining room is accepted", () => {
    const open = OpenRequests.make(bounds)
    open.begin(entry("1", alice, 19))
    expect(codes(open)).toEqual(["room", "room"])
    open.begin(entry("2", alice, 15))
    expect(codes(open)).toEqual(["rate_limited", "room"])
    open.begin(entry("3", bob, 10))
    expect(codes(open)).toEqual(["overloaded", "overloaded"])
    open.close("2")
    expect(codes(open)).toEqual(["room", "room"])
  })

  it("count until they end: unaccepted requests with their work, accepted requests with their answer", () => {
    const open = OpenRequests.make({ ...bounds, requestsPerAccount: 1 })
    open.begin(entry("1"))
    open.end("1", false)
    expect(codes(open)[0]).toBe("room")
    open.begin(entry("2"))
    open.end("2", true)
    expect(codes(open)[0]).toBe("rate_limited")
    open.close("2")
    open.close("2")
    expect(codes(open)[0]).toBe("room")
  })

  it("are the journal's, and the unaccepted requests of this process", () => {
    const open = OpenRequests.make({ ...bounds, requestsPerAccount: 1 })
    const one = (accountId: AccountId) => ({ accountId, requests: 1, elements: 1 })
    open.read([one(alice), one(bob)])
    expect(codes(open)).toEqual(["rate_limited", "rate_limited"])
    open.read([])
    expect(codes(open)).toEqual(["room", "room"])
    open.begin(entry("not accepted yet"))
    open.read([one(bob)])
    expect(codes(open)).toEqual(["rate_limited", "rate_limited"])
    open.end("not accepted yet", false)
    expect(codes(open)).toEqual(["room", "rate_limited"])
  })

  it("are counted once when accepted here and present in the journal", () => {
    const open = OpenRequests.make(bounds)
    open.begin(entry("1"))
    open.end("1", true)
    open.read([{ accountId: alice, requests: 1, elements: 1 }])
    expect(codes(open)[0]).toBe("room")
    open.begin(entry("2"))
    expect(codes(open)[0]).toBe("rate_limited")
    open.close("1")
    expect(codes(open)[0]).toBe("room")
  })
})
