import { describe, expect } from "@effect/vitest"
import { Effect, Layer, Result } from "effect"
import * as Troubles from "../../../src/application/observe/Troubles.js"
import {
  KillSwitches,
  KillSwitchesError,
  type Switched
} from "../../../src/application/ports/KillSwitches.js"
import { CurrentRequest } from "../../../src/application/request/CurrentRequest.js"
import * as KillSwitch from "../../../src/application/tenants/KillSwitch.js"
import { address } from "../../support/journal/Make.js"
import * as Log from "../../support/Log.js"
import { test, testOver } from "../../support/Test.js"

const key = { kind: "signer", address: address(1) } as const
const chain = { kind: "chain", chainId: 137n } as const

const nameOf = (what: Switched) => (what.kind === "chain" ? what.chainId.toString() : what.address)

/** Switches that are thrown by what is put into the set; null: nobody can say. */
const world = (accepted = false) => {
  const state: { paused: Set<string> | null; accepted: boolean } = { paused: new Set(), accepted }
  const current: CurrentRequest["Service"] = {
    body: "",
    idempotency: null,
    resumed: false,
    accepted: () => state.accepted,
    relies: [],
    accept: () => Effect.succeed({ _tag: "accepted" }),
    schedule: () => Effect.die("nothing waits"),
    extend: () => Effect.void,
    dismiss: Effect.void,
    sent: () => Effect.void,
    work: Effect.void,
    rest: Effect.void,
    conclude: Effect.void
  }
  const switches: typeof KillSwitches.Service = {
    isPaused: (what) =>
      Effect.suspend(() =>
        state.paused === null
          ? Effect.fail(new KillSwitchesError({ message: "away" }))
          : Effect.succeed(state.paused.has(nameOf(what)))
      )
  }
  const code = <E extends { readonly code: string }>(effect: Effect.Effect<void, E>) =>
    Effect.map(Effect.result(Effect.provideService(effect, KillSwitches, switches)), (result) =>
      Result.isFailure(result) ? result.failure.code : null
    )
  const writing = <E extends { readonly code: string }>(effect: Effect.Effect<void, E>) =>
    code(Effect.provideService(effect, CurrentRequest, current))
  return { state, current, code, writing }
}

describe("a kill switch", () => {
  test("stops a new write by its key and on its chain", function* () {
    const { state, writing } = world()
    expect(yield* writing(KillSwitch.guard(key, "p"))).toBeNull()
    state.paused = new Set([key.address])
    expect(yield* writing(KillSwitch.guard(key, "p"))).toBe("writes_paused")
    expect(yield* writing(KillSwitch.guard(chain, "p"))).toBeNull()
    state.paused = new Set(["137"])
    expect(yield* writing(KillSwitch.guard(chain, "p"))).toBe("writes_paused")
  })

  test("stops no reading, and nothing that was accepted before", function* () {
    const { code, current, state } = world()
    state.paused = new Set([key.address, "137"])
    expect(yield* code(KillSwitch.guard(key, "p"))).toBeNull()
    const resumed = world(true)
    resumed.state.paused = new Set([key.address, "137"])
    expect(yield* resumed.writing(KillSwitch.guard(key, "p"))).toBeNull()
    expect(yield* resumed.writing(KillSwitch.recheck(resumed.current, key.address))).toBeNull()
    expect([current.relies, resumed.current.relies]).toEqual([[], []])
  })

  test("that is thrown while a write waits stops it before it is accepted, whatever it works with", function* () {
    const { current, state, writing } = world()
    yield* writing(KillSwitch.guard(key, "settings.cosigners[0]"))
    yield* writing(KillSwitch.guard(chain, "settings.rpc"))
    expect(yield* writing(KillSwitch.recheck(current, address(2)))).toBeNull()
    for (const name of [key.address, "137", address(2)]) {
      state.paused = new Set([name])
      expect(yield* writing(KillSwitch.recheck(current, address(2)))).toBe("writes_paused")
    }
    state.accepted = true
    expect(yield* writing(KillSwitch.recheck(current, address(2)))).toBeNull()
  })

  test("that nobody can read lets no write through", function* () {
    const { state, writing } = world()
    state.paused = null
    expect(yield* writing(KillSwitch.guard(key, "p"))).toBe("unavailable")
  })

  test("is not thrown where nobody provides any", function* () {
    yield* KillSwitch.check({ what: key, path: "p" })
    yield* KillSwitch.check({ what: chain, path: "p" })
  })
})

testOver(Layer.sync(Troubles.Shared, Troubles.make))(
  "switches that cannot be read are told of once, however many requests are refused, and when that is over",
  function* () {
    const lines = yield* Log.listen
    const { code, state } = world()
    const check = code(KillSwitch.check({ what: chain, path: "settings.rpc" }))
    state.paused = null
    for (let n = 0; n < 50; n += 1) expect(yield* check).toBe("unavailable")
    state.paused = new Set()
    expect(yield* check).toBeNull()
    expect(Log.told(lines, "kill switches unavailable")).toEqual(["ERROR", "INFO"])
  }
)
