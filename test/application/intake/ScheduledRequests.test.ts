import { describe, expect } from "@effect/vitest"
import { Effect } from "effect"
import * as OpenRequests from "../../../src/application/intake/OpenRequests.js"
import { JournalError } from "../../../src/application/ports/journal/JournalError.js"
import type { AccountId } from "../../../src/application/ports/Tenants.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const account = (name: string) => name as AccountId
const [alice, bob] = [account("alice"), account("bob")]

const bounds = { requests: 4, elements: 40, requestsPerAccount: 2, elementsPerAccount: 20 }

const journal = () => {
  const state = {
    asked: 0,
    waiting: [] as ReadonlyArray<{ accountId: AccountId; requests: number; elements: number }>
  }
  const waiting = Effect.sync(() => {
    state.asked += 1
    return state.waiting
  })
  return { state, scheduled: OpenRequests.admitScheduled(bounds, { waiting }) }
}

const codeOf = (
  schedule: ReturnType<typeof OpenRequests.admitScheduled>,
  accountId: AccountId,
  elements = 1
) =>
  Effect.match(schedule({ accountId, elements }), {
    onFailure: (failure) => ("code" in failure ? failure.code : failure._tag),
    onSuccess: () => "room"
  })

describe("requests that wait for their windows", () => {
  test("are bounded per account and in total, by the journal's count and later admissions", function* () {
    const { scheduled, state } = journal()
    state.waiting = [{ accountId: bob, requests: 1, elements: 1 }]
    expect(yield* codeOf(scheduled, alice)).toBe("room")
    expect(yield* codeOf(scheduled, alice)).toBe("room")
    expect(yield* codeOf(scheduled, alice)).toBe("rate_limited")
    expect(yield* codeOf(scheduled, bob)).toBe("room")
    expect(yield* codeOf(scheduled, account("carol"))).toBe("overloaded")
    expect(state.asked).toBe(1)
  })

  test("are bounded by elements, but a request larger than the remaining room is admitted", function* () {
    const { scheduled } = journal()
    expect(yield* codeOf(scheduled, alice, 19)).toBe("room")
    expect(yield* codeOf(scheduled, alice, 15)).toBe("room")
    expect(yield* codeOf(scheduled, bob, 6)).toBe("room")
    expect(yield* codeOf(scheduled, account("carol"), 1)).toBe("overloaded")
  })

  test("are counted again after a second, so that windows begun by any process make room", function* () {
    const { scheduled, state } = journal()
    state.waiting = [{ accountId: alice, requests: 2, elements: 2 }]
    expect(yield* codeOf(scheduled, alice)).toBe("rate_limited")
    state.waiting = []
    expect(yield* codeOf(scheduled, alice)).toBe("rate_limited")
    yield* Time.adjust("1 second")
    expect(yield* codeOf(scheduled, alice)).toBe("room")
  })

  test("are refused if the journal cannot count them", function* () {
    const waiting = Effect.fail(new JournalError({ message: "away" }))
    expect(yield* codeOf(OpenRequests.admitScheduled(bounds, { waiting }), alice)).toBe("JournalError")
  })
})
