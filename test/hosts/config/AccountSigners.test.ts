import { expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { Signers } from "../../../src/application/ports/Signers.js"
import { TenantStoreError } from "../../../src/application/ports/TenantStore.js"
import { Directory } from "../../../src/application/tenants/Directory.js"
import * as AccountSigners from "../../../src/hosts/config/AccountSigners.js"
import * as Make from "../../support/journal/Make.js"
import * as PrivateKeys from "../../support/signing/PrivateKeys.js"

const ref = { clientId: "desk", versionId: "1" }

it.effect("an unavailable account store leaves the known keys in force", () =>
  Effect.gen(function* () {
    const away = Effect.fail(new TenantStoreError({ reason: "unavailable", message: "it is away" }))
    const content = { accounts: [], keys: [], networks: [], signers: [], pauses: [] }
    const directory = Layer.succeed(Directory, {
      content: away,
      latest: Effect.succeed(content),
      authenticate: () => away,
      hasKey: () => away,
      isPaused: () => away,
      isActive: () => away
    })
    const registry = PrivateKeys.registry({
      signers: [{ ...ref, accountIds: [Make.alice], privateKey: Redacted.make(`0x${"11".repeat(32)}`) }],
      system: {}
    })
    const ports = yield* Layer.build(Layer.provide(AccountSigners.layer(registry), directory))
    const signer = yield* Context.get(ports, Signers).resolve(Make.alice, ref)
    expect(signer.address).toBe("0x19E7E376E7C213B7E7e7e46cc70A5dD086DAff2A")
  })
)
