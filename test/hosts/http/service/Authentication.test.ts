import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Troubles from "../../../../src/application/observe/Troubles.js"
import { TenantsError } from "../../../../src/application/ports/Tenants.js"
import * as Authentication from "../../../../src/hosts/http/service/Authentication.js"
import * as Log from "../../../support/Log.js"

describe("a store of keys that does not answer", () => {
  it.effect("an unavailable key store is logged once, and once on recovery", () => {
    const log = Log.make()
    let isAway = true
    const tenants = {
      authenticate: () =>
        Effect.suspend(() =>
          isAway ? Effect.fail(new TenantsError({ message: "away" })) : Effect.succeed(null)
        )
    }
    return Effect.gen(function* () {
      for (let n = 0; n < 50; n += 1)
        expect((yield* Effect.flip(Authentication.authenticate(tenants, "key"))).code).toBe("unavailable")
      isAway = false
      expect((yield* Effect.flip(Authentication.authenticate(tenants, "key"))).code).toBe("unauthorized")
      expect(Log.told(log.lines, "authentication store unavailable")).toEqual(["ERROR", "INFO"])
    }).pipe(Effect.provide(log.layer), Effect.provideService(Troubles.Shared, Troubles.make()))
  })
})
