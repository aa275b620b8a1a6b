import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { RequestSize } from "../../../src/adapters/json-rpc/transport/RequestSize.js"
import { callsOf, countingGateway, type HostileNode, honest, refusing } from "../../support/HostileNode.js"
import { balances, connect } from "./support.js"

const counting = (perSecond: number, how: string) =>
  Effect.acquireRelease(
    Effect.promise(() =>
      countingGateway(perSecond, refusing[how] ?? (() => undefined), (response, body) =>
        honest(response, body, () => "0x7")
      )
    ),
    (node: HostileNode) => Effect.promise(node.close)
  )

const sizes = ({ seen }: HostileNode) => seen.map(({ body }) => callsOf(body).length)

/** As the service waits. */
const patient = { retry: { baseMillis: 50, maxMillis: 1_000 } }

describe("a gateway that counts the calls of a request", () => {
  it.live.each(Object.keys(refusing))("a gateway that refuses a whole batch by %s gets smaller ones", (how) =>
    Effect.gen(function* () {
      const node = yield* counting(15, how)
      const chain = yield* connect(node, patient)
      const answers = yield* balances(chain, 20)
      expect(answers.every((answer) => answer._tag === "Success" && answer.success === 7n)).toBe(true)
      expect(sizes(node)[0]).toBe(20)
      expect(node.seen.length).toBeLessThan(40)
    })
  )

  it.live("a gateway that takes single calls only gets them, for all concurrent callers", () =>
    Effect.gen(function* () {
      const node = yield* counting(40, "429 alone")
      const chain = yield* connect(node, patient)
      const all = yield* Effect.all([balances(chain, 60), balances(chain, 16)], { concurrency: "unbounded" })
      expect(all.flat().every(({ _tag }) => _tag === "Success")).toBe(true)
    })
  )

  it.live("a gateway that lets no call through fails all calls together", () =>
    Effect.gen(function* () {
      const node = yield* counting(0, "one error")
      const chain = yield* connect(node, { retry: { baseMillis: 1, maxMillis: 5, rateLimited: 6 } })
      const answers = yield* balances(chain, 100)
      expect(
        answers.every((answer) => answer._tag === "Failure" && answer.failure.reason === "rateLimited")
      ).toBe(true)
      expect(sizes(node)).toEqual([100, 50, 25, 12, 6, 3, 1])
    })
  )
})

describe("the calls of a request", () => {
  it("the calls of a request halve after a refusal, down to one", () => {
    const size = new RequestSize(20)
    const seen = [1, 2, 3, 4, 5].map((now) => {
      size.refused(size.calls, now)
      return size.calls
    })
    expect(seen).toEqual([10, 5, 2, 1, 1])
    expect(size.isSlowed).toBe(true)
  })

  it("the calls of a request grow after two replies in a row, up to the original number", () => {
    const size = new RequestSize(8)
    size.refused(8, 0)
    size.refused(4, 1)
    size.taken(2, 2)
    expect(size.calls).toBe(2)
    // Fewer than might be: that says nothing.
    size.taken(1, 3)
    expect(size.calls).toBe(2)
    size.taken(2, 4)
    expect(size.calls).toBe(4)
    size.taken(4, 5)
    size.taken(4, 6)
    expect([size.calls, size.isSlowed, size.isNarrow]).toEqual([8, false, false])
  })

  it("the calls of a request grow every two seconds, half as often after each failure", () => {
    const size = new RequestSize(16)
    size.refused(16, 0)
    let now = 0
    for (const millis of [2_000, 4_000, 8_000, 16_000, 32_000, 32_000]) {
      size.refused(8, now)
      expect([size.grow(now + millis - 1), size.grow(now + millis)]).toEqual([false, true])
      now += millis
      size.refused(size.calls, now)
    }
  })

  it("calls share a request again some time after the last refusal", () => {
    const size = new RequestSize(16)
    size.tooMany(16, 0)
    expect(size.isSlowed).toBe(false)
    size.refused(8, 0)
    expect(size.isSlowed).toBe(true)
    size.grow(32_000)
    expect(size.isSlowed).toBe(false)
  })
})
