import * as Redacted from "effect/Redacted"
import type { AccountId } from "../../src/application/ports/Tenants.js"
import * as PrivateKeys from "../support/signing/PrivateKeys.js"
import { signersSuite } from "./Signers.suite.js"

const acme = "acme" as AccountId
const globex = "globex" as AccountId
const key = (n: number) => Redacted.make(`0x${n.toString(16).padStart(64, "ab")}`)

signersSuite("the key ring", {
  layer: PrivateKeys.layer({
    signers: [
      { accountIds: [acme], clientId: "hsm", versionId: "1", privateKey: key(1) },
      { accountIds: [acme], clientId: "hsm", versionId: "2", privateKey: key(2) },
      { accountIds: [acme], clientId: "mpc", assetId: "1", privateKey: key(3) },
      { accountIds: [globex], clientId: "other", versionId: "1", privateKey: key(4) }
    ],
    system: { deployer: key(10), serviceEoa: key(11), sponsor: key(12) }
  }),
  account: acme,
  refs: [
    { clientId: "hsm", versionId: "1" },
    { clientId: "hsm", versionId: "2" },
    { clientId: "mpc", assetId: "1" }
  ],
  otherAccount: globex,
  otherRef: { clientId: "other", versionId: "1" }
})
