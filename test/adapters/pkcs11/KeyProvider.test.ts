import { afterAll, beforeAll } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as Pkcs11KeyProvider from "../../../src/adapters/pkcs11/KeyProvider.js"
import { keyProviderSuite } from "../../contracts/KeyProvider.suite.js"
import * as SoftHsm from "../../support/softhsm/SoftHsm.js"

const hsm = SoftHsm.make()
afterAll(() => hsm.remove())
beforeAll(() => {
  SoftHsm.within(hsm, (pkcs11, session) => SoftHsm.generate(pkcs11, session, "main"))
})

keyProviderSuite("PKCS #11 (SoftHSM2)", {
  make: () =>
    Pkcs11KeyProvider.make({ module: SoftHsm.library, token: hsm.token, pin: Redacted.make(hsm.pin) }),
  keyName: "main",
  missingKeyName: "nobody"
})
