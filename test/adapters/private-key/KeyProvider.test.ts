import * as Redacted from "effect/Redacted"
import * as PrivateKeys from "../../../src/adapters/private-key/KeyProvider.js"
import { keyProviderSuite } from "../../contracts/KeyProvider.suite.js"

const text = `0x${"1".padStart(64, "ab")}`

keyProviderSuite("private keys", {
  make: () => PrivateKeys.make({ keys: { key: Redacted.make(text) } }),
  keyName: "key",
  missingKeyName: "no such key"
})
