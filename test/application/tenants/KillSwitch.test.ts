import { describe, expect } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import * as Troubles from "../../../src/application/observe/Troubles.js"
import {
  KillSwitches,
  KillSwitchesError,
  type Switched
} from "../../../src/application/ports/KillSwitches.js"
import * as KillSwitch from "../../../src/application/tenants/KillSwitch.js"
import { address, alice } from "../../support/journal/Make.js"
import * as Log from "../../support/Log.js"
import { test, testOver } from "../../support/Test.js"

const key = { kind: "signer", address: address(1) } as const
const chain = { kind: "chain", chainId: 137n } as const
const account = { kind: "account", accountId: alice } as const

const nameOf = (what: Switched) =>
  what.kind === "chain" ? what.chainId.toString() : what.kind === "signer" ? what.address : what.accountId

/** Active switches are the members of the set; null: the store cannot be read. */
const world = () => {
  const state: { paused: Set<string> | null } = { paused: new Set() }
  const switches: typeof KillSwitches.Service = {
    isPaused: (what) =>
      Effect.suspend(() =>
        state.paused === null
          ? Effect.fail(new KillSwitchesError({ message: "away" }))
          : Effect.succeed(state.paused.has(nameOf(what)))
      )
  }
  const check = (what: Switched) =>
    Effect.map(
      Effect.result(Effect.provideService(KillSwitch.check({ what, path: "p" }), KillSwitches, switches)),
      (result) => (Result.isFailure(result) ? result.failure.code : null)
    )
  return { state, check }
}

describe("a kill switch", () => {
  test("stops every request with its key or on its chain", function* () {
    const { check, state } = world()
    expect(yield* check(key)).toBeNull()
    state.paused = new Set([key.address])
    expect(yield* check(key)).toBe("writes_paused")
    expect(yield* check(chain)).toBeNull()
    state.paused = new Set(["137"])
    expect(yield* check(chain)).toBe("writes_paused")
    expect(yield* check(account)).toBeNull()
    state.paused = new Set([alice])
    expect(yield* check(account)).toBe("writes_paused")
  })

  test("stops every request when it cannot be read", function* () {
    const { check, state } = world()
    state.paused = null
    expect(yield* check(key)).toBe("unavailable")
  })

  test("is inactive without a store of switches", function* () {
    yield* KillSwitch.check({ what: key, path: "p" })
    yield* KillSwitch.check({ what: chain, path: "p" })
  })
})

testOver(Layer.sync(Troubles.Shared, Troubles.make))(
  "an unreadable store of switches is logged once, however many requests are refused, and when it is readable again",
  function* () {
    const lines = yield* Log.listen
    const { check, state } = world()
    state.paused = null
    for (let n = 0; n < 50; n += 1) expect(yield* check(chain)).toBe("unavailable")
    state.paused = new Set()
    expect(yield* check(chain)).toBeNull()
    expect(Log.told(lines, "kill switches unavailable")).toEqual(["ERROR", "INFO"])
  }
)
