import { describe, expect } from "@effect/vitest"
import { Clock, Context, Effect, Redacted } from "effect"
import * as ClockCheck from "../../../src/application/operate/ClockCheck.js"
import { type ChainClient, ChainRpc, ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import type { Confirmation } from "../../../src/application/ports/clock/ClockConfirmations.js"
import * as ClockTrust from "../../../src/application/ports/clock/ClockTrust.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import * as Log from "../../support/Log.js"
import * as SetClock from "../../support/SetClock.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const now = 1_800_000_000_000
const hour = 3_600_000

/** The verdict of a process whose chains have these times at its start, by chain id, in ms; null: the node is away. */
const started = (times: Readonly<Record<string, number | null>>, confirmedAt: number | null = null) =>
  Effect.gen(function* () {
    yield* Time.setTime(now)
    const at = new Map(Object.entries(times))
    const trust = ClockTrust.make()
    const log = Log.make()
    let ahead = 0
    const here = SetClock.settable(() => ahead)
    let latest: Confirmation | null = confirmedAt === null ? null : { number: 1n, at: confirmedAt }
    const connect = (url: string) =>
      Effect.succeed({
        block: () =>
          Effect.suspend(() => {
            const time = at.get(url)
            return time === undefined || time === null
              ? Effect.fail(new ChainRpcError({ reason: "unavailable", message: "away" } as never))
              : // The chain's time advances with the true clock.
                Effect.map(Clock.currentTimeMillis, (here) => ({
                  timestamp: (time + here - ahead - now) / 1_000
                }))
          })
      } as unknown as ChainClient)
    yield* ClockCheck.start({
      profiles: Object.keys(times).map((id) =>
        NetworkProfile.make({ chainId: BigInt(id), rpc: Redacted.make(id) })
      ),
      remedy: "confirm it",
      confirmation: Effect.sync(() => latest)
    }).pipe(
      Effect.provide(Context.make(ClockTrust.ClockTrust, trust).pipe(Context.add(ChainRpc, { connect }))),
      Effect.provide(log.layer),
      here
    )
    const before = yield* Effect.all([trust.mayDelete, trust.mayExpire])
    yield* Time.adjust(1)
    return {
      at,
      before,
      /** Whether it deletes, and whether requests expire. */
      may: here(Effect.all([trust.mayDelete, trust.mayExpire])),
      /** Sets the machine's clock this far ahead of the true time. */
      set: (millis: number) => {
        ahead = millis
      },
      confirm: (time: number) => {
        latest = { number: (latest?.number ?? 0n) + 1n, at: time }
      },
      lines: log.lines
    }
  })

describe("the clock of a process that starts", () => {
  test("deletes no rows before a chain has replied, and is trusted within an hour of it", function* () {
    for (const time of [now - hour, now, now + hour]) {
      const { before, lines, may } = yield* started({ 1: time })
      expect(before).toEqual([false, false])
      expect(yield* may).toEqual([true, true])
      expect(lines).toEqual([])
    }
  })

  test("is doubted beyond one hour in either direction, and one line states the stored time, its source and the remedy", function* () {
    for (const ahead of [hour + 1_000, -hour - 1_000]) {
      const { lines, may } = yield* started({ 1: now - ahead, 10: now })
      yield* Time.adjust("1 minute")
      expect(yield* may).toEqual([false, false])
      expect(lines.map(({ level }) => level)).toEqual(["WARN"])
      expect(lines[0]?.message).toContain("confirm it")
      expect(lines[0]?.annotations).toEqual({
        aheadOfChains: `1: ${ahead / 1_000} s`,
        nearToChains: "10"
      })
    }
  })

  test("is trusted again as soon as the operator confirms it, without a start", function* () {
    const { confirm, lines, may } = yield* started({ 1: now - 100 * hour }, now - 90 * hour)
    yield* Time.adjust("10 minutes")
    expect(yield* may).toEqual([false, false])
    confirm(now)
    yield* Time.adjust("5 seconds")
    expect(yield* may).toEqual([true, true])
    expect(lines.map(({ level }) => level)).toEqual(["WARN", "INFO"])
  })

  test("is trusted at a start within the hour after the operator's word, and doubted later", function* () {
    for (const [confirmedAt, is] of [
      [now - hour, true],
      [now - hour - 1, false]
    ] as const) {
      const { may } = yield* started({ 1: now - 100 * hour }, confirmedAt)
      expect(yield* may).toEqual([is, is])
    }
  })

  test("is not checked against development chains, nor without a chain", function* () {
    for (const times of [{ 31337: 0, 1337: 0 }, {}]) {
      const { before } = yield* started(times)
      expect(before).toEqual([true, true])
    }
  })

  test("lets requests expire while no node replies, deletes nothing, and asks again", function* () {
    const { at, may } = yield* started({ 1: null, 10: null })
    expect(yield* may).toEqual([false, true])
    at.set("10", now - 2 * hour)
    yield* Time.adjust("10 seconds")
    expect(yield* may).toEqual([false, false])
    const other = yield* started({ 1: null, 10: now })
    expect(yield* other.may).toEqual([true, true])
  })

  test("is trusted again when every far chain is near, without a start", function* () {
    const { at, lines, may } = yield* started({ 1: now - 2 * hour, 10: now })
    at.set("1", null)
    yield* Time.adjust("10 seconds")
    expect(yield* may).toEqual([false, false])
    at.set("1", now)
    yield* Time.adjust("10 seconds")
    expect(yield* may).toEqual([true, true])
    expect(lines.map(({ level }) => level)).toEqual(["WARN", "INFO"])
  })
})

describe("the clock of a process that runs", () => {
  test("is doubted immediately when it is set by over an hour, until it is set right", function* () {
    for (const ahead of [hour + 1, -hour - 1]) {
      const { lines, may, set } = yield* started({ 1: now, 10: null })
      set(ahead)
      expect(yield* may).toEqual([false, false])
      yield* Time.adjust("1 minute")
      expect(yield* may).toEqual([false, false])
      expect(lines.map(({ level }) => level)).toEqual(["WARN"])
      expect(lines[0]?.message).toContain("confirm it")
      set(0)
      yield* Time.adjust("10 seconds")
      expect(yield* may).toEqual([true, true])
      expect(lines.map(({ level }) => level)).toEqual(["WARN", "INFO"])
    }
  })

  test("is trusted when the operator confirms it, and doubted when it is set again", function* () {
    const { confirm, may, set } = yield* started({ 1: now })
    set(2 * hour)
    yield* Time.adjust("5 seconds")
    confirm(now)
    yield* Time.adjust("5 seconds")
    expect(yield* may).toEqual([true, true])
    set(0)
    expect(yield* may).toEqual([false, false])
    yield* Time.adjust("5 seconds")
    expect(yield* may).toEqual([true, true])
  })

  test("is trusted while it is set by less, and after the sleep of its machine", function* () {
    const { at, may, set } = yield* started({ 1: now })
    set(hour)
    expect(yield* may).toEqual([true, true])
    set(9 * hour)
    at.set("1", now + 9 * hour)
    yield* Time.adjust("5 seconds")
    expect(yield* may).toEqual([true, true])
  })

  test("is not looked at where nothing checks it", function* () {
    const { may, set } = yield* started({ 31337: 0 })
    set(9 * hour)
    expect(yield* may).toEqual([true, true])
  })
})
