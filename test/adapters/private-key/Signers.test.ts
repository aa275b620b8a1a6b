import { inspect } from "node:util"
import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { computeAddress } from "ethers"
import * as PrivateKeySigners from "../../../src/adapters/private-key/Signers.js"
import type { AccountId } from "../../../src/application/ports/Accounts.js"
import { Signers, SystemSigners } from "../../../src/application/ports/Signers.js"
import * as Hex from "../../../src/domain/evm/Hex.js"
import { signersSuite } from "../../contracts/Signers.suite.js"

const acme = "acme" as AccountId
const globex = "globex" as AccountId
const keyText = (n: number): string => `0x${n.toString(16).padStart(64, "ab")}`
const key = (n: number) => Redacted.make(keyText(n))

const registry: PrivateKeySigners.Registry = {
  signers: [
    { accountIds: [acme], clientId: "hsm", versionId: "1", privateKey: key(1) },
    { accountIds: [acme], clientId: "hsm", versionId: "2", privateKey: key(2) },
    { accountIds: [acme], clientId: "mpc", assetId: "1", privateKey: key(3) },
    { accountIds: [globex], clientId: "other", versionId: "1", privateKey: key(4) }
  ],
  system: { deployer: key(10), serviceEoa: key(11) }
}

signersSuite("private keys", {
  layer: PrivateKeySigners.layer(registry),
  account: acme,
  refs: [
    { clientId: "hsm", versionId: "1" },
    { clientId: "hsm", versionId: "2" },
    { clientId: "mpc", assetId: "1" }
  ],
  otherAccount: globex,
  otherRef: { clientId: "other", versionId: "1" }
})

const refused = (signers: ReadonlyArray<PrivateKeySigners.SignerRecord>, system = registry.system) =>
  Effect.flip(PrivateKeySigners.make({ signers, system }))

describe("the private-key registry", () => {
  it.effect("takes keys with and without 0x", () =>
    Effect.gen(function* () {
      const { signers } = yield* PrivateKeySigners.make({
        signers: [
          {
            accountIds: [acme],
            clientId: "a",
            versionId: "1",
            privateKey: Redacted.make(keyText(1).slice(2))
          }
        ],
        system: {}
      })
      const signer = yield* signers.resolve(acme, { clientId: "a", versionId: "1" })
      expect(signer.address).toBe(computeAddress(keyText(1)))
      expect(signer.type).toBe("PRIVATE_KEY")
    })
  )

  it.effect("refuses what is no private key, without telling it", () =>
    Effect.gen(function* () {
      const order = "fffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141"
      for (const text of [
        "",
        "0x",
        "0x1234",
        "z".repeat(64),
        "0".repeat(64),
        order,
        `${keyText(1)}00`,
        ` ${keyText(1)}`
      ]) {
        const record = { accountIds: [acme], clientId: "a", versionId: "1", privateKey: Redacted.make(text) }
        const error = yield* refused([record])
        expect(error.reason).toBe("badKey")
        expect(error.message).toBe('signer "a" versionId "1" has no valid secp256k1 private key')
        const system = yield* refused([], { deployer: Redacted.make(text) })
        expect(system.message).toBe("the system key deployer has no valid secp256k1 private key")
        if (text.length > 8)
          for (const shown of [
            inspect(error, { depth: 9, showHidden: true }),
            JSON.stringify(error),
            String(error.stack)
          ])
            expect(shown).not.toContain(text)
      }
    })
  )

  it.effect("refuses a record that names not exactly one of versionId and assetId, or no account", () =>
    Effect.gen(function* () {
      for (const record of [
        { accountIds: [acme], clientId: "a" },
        { accountIds: [acme], clientId: "a", versionId: "1", assetId: "1" },
        { accountIds: [acme], clientId: "", versionId: "1" },
        { accountIds: [acme], clientId: "a", versionId: "" },
        { accountIds: [], clientId: "a", versionId: "1" }
      ])
        expect((yield* refused([{ ...record, privateKey: key(1) }])).reason).toBe("badReference")
    })
  )

  it.effect("refuses two keys under one reference of an account", () =>
    Effect.gen(function* () {
      const error = yield* refused([
        { accountIds: [acme], clientId: "a", versionId: "1", privateKey: key(1) },
        { accountIds: [acme], clientId: "a", versionId: "1", privateKey: key(2) }
      ])
      expect(error.reason).toBe("duplicateReference")
    })
  )

  it.effect("the same number as version and as asset are two references", () =>
    PrivateKeySigners.make({
      signers: [
        { accountIds: [acme], clientId: "a", versionId: "1", privateKey: key(1) },
        { accountIds: [acme], clientId: "a", assetId: "1", privateKey: key(2) }
      ],
      system: {}
    })
  )

  it.effect("refuses two accounts that reach one EOA, in one record or in two", () =>
    Effect.gen(function* () {
      const together = yield* refused([
        { accountIds: [acme, globex], clientId: "a", versionId: "1", privateKey: key(1) }
      ])
      expect(together.reason).toBe("sharedEoa")
      const apart = yield* refused([
        { accountIds: [acme], clientId: "a", versionId: "1", privateKey: key(1), shared: true },
        { accountIds: [globex], clientId: "b", versionId: "1", privateKey: key(1) }
      ])
      expect(apart.reason).toBe("sharedEoa")
      expect(apart.message).toContain(computeAddress(keyText(1)))
    })
  )

  it.effect("lets accounts share an EOA when every record of it says so, and one account name it twice", () =>
    Effect.gen(function* () {
      const { signers } = yield* PrivateKeySigners.make({
        signers: [
          { accountIds: [acme, globex], clientId: "dev", versionId: "1", privateKey: key(1), shared: true },
          { accountIds: [acme], clientId: "own", versionId: "1", privateKey: key(2) },
          { accountIds: [acme], clientId: "own", assetId: "MATIC", privateKey: key(2) }
        ],
        system: {}
      })
      const a = yield* signers.resolve(acme, { clientId: "dev", versionId: "1" })
      const b = yield* signers.resolve(globex, { clientId: "dev", versionId: "1" })
      expect(a.address).toBe(b.address)
    })
  )

  it.effect("refuses a system key that an account reaches, shared or not", () =>
    Effect.gen(function* () {
      for (const shared of [true, false])
        for (const n of [10, 11]) {
          const error = yield* refused([
            { accountIds: [acme], clientId: "a", versionId: "1", privateKey: key(n), shared }
          ])
          expect(error.reason).toBe("systemKeyReachable")
        }
    })
  )

  it.effect("refuses one key as deployer and service EOA", () =>
    Effect.gen(function* () {
      expect((yield* refused([], { deployer: key(5), serviceEoa: key(5) })).reason).toBe("systemKeysEqual")
    })
  )

  it.effect("a system key that is not configured is unavailable", () =>
    Effect.gen(function* () {
      const { systemSigners } = yield* PrivateKeySigners.make({ signers: [], system: {} })
      expect((yield* Effect.flip(systemSigners.deployer)).reason).toBe("unavailable")
      expect((yield* Effect.flip(systemSigners.serviceEoa)).reason).toBe("unavailable")
    })
  )

  it.effect("a digest that is not 32 bytes is refused", () =>
    Effect.gen(function* () {
      const { systemSigners } = yield* PrivateKeySigners.make(registry)
      const deployer = yield* systemSigners.deployer
      expect((yield* Effect.flip(deployer.sign(Hex.unsafe32("0x1234")))).reason).toBe("refused")
    })
  )

  it.effect("no key is seen in a signer, a registry or a service that is printed", () =>
    Effect.gen(function* () {
      const signers = yield* Signers
      const system = yield* SystemSigners
      const signer = yield* signers.resolve(acme, { clientId: "hsm", versionId: "1" })
      const deployer = yield* system.deployer
      for (const thing of [signers, system, signer, deployer, registry])
        for (const shown of [
          inspect(thing, { depth: 20, showHidden: true }),
          JSON.stringify(thing),
          String(thing)
        ])
          for (const n of [1, 2, 3, 4, 10, 11]) {
            expect(shown).not.toContain(keyText(n).slice(2))
            expect(shown).not.toContain(BigInt(keyText(n)).toString())
          }
    }).pipe(Effect.provide(PrivateKeySigners.layer(registry)))
  )
})
