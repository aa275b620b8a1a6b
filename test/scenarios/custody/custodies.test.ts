import type * as Effect from "effect/Effect"
import { concat, id, Wallet } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import type { Executed } from "../../../src/application/answers/TransactionResult.js"
import type { Failure } from "../../../src/application/failures/Failure.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { keyOf, type Ports, startStack } from "../../support/stack/Stack.js"
import { assertion, configOf, ecdsa, indexIn, newPasskey, personal } from "../../support/suite/Keys.js"
import { type Config, mixedProof } from "../../support/suite/Layouts.js"
import { use } from "../../support/Use.js"

/** Authorised signers of each custody; sponsor/entryPoints covers sponsored wallets on the other EntryPoints. */

const stack = use(startStack)
let journey: Journey.Journey
beforeAll(async () => {
  journey = Journey.make(stack, "v0.7")
})

const [own, spare, alice, mallory] = [keyOf(1), keyOf(6), new Wallet(id("alice")), new Wallet(id("mallory"))]
const [phone, tablet] = [Authenticator.make(), Authenticator.make()]
const stranger = Authenticator.make(newPasskey())
const ownRef = { clientId: "dev", versionId: "1" }
const passkeyPubKey = [phone, tablet].map(({ spki }) => spki.toString("base64"))
const passkeys = [phone.passkey, tablet.passkey]

type Way = (operation: Operation) => Promise<Effect.Effect<Executed, Failure, Ports>>
type Estimated = Awaited<ReturnType<Journey.Journey["estimated"]>>

const execute =
  (more: object = {}): Way =>
  async (operation) =>
    journey.execute(operation, more)
const encoded =
  (sign: (op: Estimated) => string, more: object = {}): Way =>
  async (operation) => {
    const op = await journey.estimated(operation, more)
    return journey.executeEncoded(op, sign(op), more)
  }
const passkey =
  (authenticator: Authenticator.Authenticator, options: Authenticator.GetOptions = {}): Way =>
  async (operation) => {
    const op = await journey.hashed(operation)
    return journey.executePasskey(op, authenticator.get(op.signingHash, options))
  }

const ofAll = configOf(4, [own, alice], passkeys, 3)
const parts = (hash: string, ...of: ReadonlyArray<Authenticator.Authenticator>) =>
  of.map((each) => assertion(hash, each.passkey, { index: indexIn(ofAll, each.passkey) }))
const compact = (hash: string, ...owners: ReadonlyArray<{ readonly signingKey: Wallet["signingKey"] }>) =>
  concat(owners.map(({ signingKey }) => signingKey.sign(hash).compactSerialized))

const invalid = { code: "invalid_signature" }
const short = (have: number, of: number) => ({
  code: "threshold_not_met",
  message: `threshold not met: have ${have} of ${of}`
})
const saying = (message: string) => ({ ...invalid, details: [{ message: expect.stringContaining(message) }] })

interface Case {
  readonly custody: Config["custody"]
  readonly account: object
  readonly config: Config
  readonly moves: Readonly<Record<string, Way>>
  readonly stays: Readonly<Record<string, readonly [Way, object]>>
}

const cases: ReadonlyArray<Case> = [
  {
    custody: 1,
    account: {},
    config: configOf(1, [own]),
    moves: {
      "its owner": execute(),
      "its owner, signed elsewhere and submitted by another party": encoded(
        (op) => ecdsa(op.signingHash, own),
        { signer: Journey.second }
      ),
      "a personal message of its owner, unbound": encoded((op) => personal(op.userOpHash, own))
    },
    stays: { "another signer": [execute({ signer: Journey.second }), short(0, 1)] }
  },
  {
    custody: 2,
    account: { passkeyPubKey },
    config: configOf(2, [own], passkeys),
    moves: { "its owner": execute(), "a passkey": passkey(phone), "the other passkey": passkey(tablet) },
    stays: {
      "another wallet's passkey": [passkey(stranger), invalid],
      "another signer": [execute({ signer: Journey.second }), short(0, 1)]
    }
  },
  {
    custody: 3,
    account: { signers: [alice.address, ownRef, Journey.second], threshold: "2" },
    config: configOf(3, [own, spare, alice], [], 2),
    moves: {
      "a signer and a cosigner": execute({ cosigners: [Journey.second] }),
      "two raw signatures": encoded((op) => ecdsa(op.signingHash, own, alice)),
      "a raw one and a personal one": encoded(
        (op) => ecdsa(op.signingHash, alice) + personal(op.signingHash, own).slice(2)
      ),
      "two compact signatures": encoded((op) => compact(op.signingHash, own, alice)),
      "two compact ones in the ABI form": encoded((op) => mixedProof(compact(op.signingHash, own, alice), []))
    },
    stays: {
      "one signer alone": [execute(), short(1, 2)],
      "too few signatures": [encoded((op) => ecdsa(op.signingHash, alice)), short(1, 2)],
      "a compact one behind which another form stands": [
        encoded((op) => compact(op.signingHash, own) + ecdsa(op.signingHash, alice).slice(2)),
        invalid
      ],
      "a stranger's": [encoded((op) => ecdsa(op.signingHash, own, mallory)), saying(mallory.address)],
      "one signer's twice": [
        encoded((op) => ecdsa(op.signingHash, alice, alice)),
        saying(`signature 1 is by ${alice.address}, as signature 0 is already`)
      ],
      "one over another hash": [
        encoded((op) => ecdsa(op.signingHash, own) + ecdsa(id("x"), alice).slice(2)),
        saying("signature 1 is by no owner of the wallet over 0x")
      ]
    }
  },
  {
    custody: 4,
    account: { signers: [alice.address, ownRef], passkeyPubKey, threshold: "3" },
    config: ofAll,
    moves: {
      "a signer and both passkeys": encoded(({ signingHash }) =>
        mixedProof(ecdsa(signingHash, alice), parts(signingHash, phone, tablet))
      ),
      "both signers and a passkey": encoded(({ signingHash }) =>
        mixedProof(ecdsa(signingHash, own, alice), parts(signingHash, tablet))
      )
    },
    stays: {
      "a signer alone": [execute(), short(1, 3)],
      "a signer and a passkey": [
        encoded(({ signingHash }) => mixedProof(ecdsa(signingHash, alice), parts(signingHash, phone))),
        short(2, 3)
      ],
      "a passkey twice": [
        encoded(({ signingHash }) => mixedProof(ecdsa(signingHash, alice), parts(signingHash, phone, phone))),
        invalid
      ]
    }
  },
  {
    custody: 5,
    account: { passkeyPubKey },
    config: configOf(5, [], passkeys),
    moves: {
      "its passkey, as browsers answer": passkey(tablet),
      "its passkey in base64, with members that browsers add": passkey(tablet, {
        encoding: "base64",
        extra: { other: "x", n: 1 }
      }),
      "its passkey with s in the upper half": passkey(tablet, { s: "high" }),
      "its passkey as only r and s": passkey(tablet, { form: "ieee-p1363" })
    },
    stays: {
      "the signer that created it": [execute(), { message: "signer has no authority over this wallet" }],
      "a passkey without user verification": [passkey(phone, { flags: 0x01 }), invalid],
      "a passkey without user presence": [passkey(phone, { flags: 0x04 }), invalid],
      "an assertion of a registration": [passkey(phone, { type: "webauthn.create" }), invalid],
      "another wallet's passkey": [passkey(stranger), invalid]
    }
  }
]

describe.each(cases)("a wallet of custody $custody", ({ account, config, custody, moves, stays }) => {
  let wallet: string
  beforeAll(async () => {
    wallet = await journey.created({
      salt: `custody ${custody}`,
      walletCustody: custody as Journey.Account["walletCustody"],
      ...account
    })
  })

  it("the configuration is that of its account", async () => {
    expect(await journey.configurationOf(wallet)).toEqual(config)
  })

  it.each(Object.entries(moves))("the wallet is moved by %s", async (_, way) => {
    const to = Journey.recipient()
    await journey.transferred(await stack.ask(await way(journey.transfer(wallet, to))), wallet, to)
  })

  it.each(Object.entries(stays))("the wallet is not moved by %s", async (_, [way, failure]) => {
    const to = Journey.recipient()
    expect(await stack.refused(await way(journey.transfer(wallet, to)))).toMatchObject(failure)
    expect(await stack.balanceOf(to)).toBe(0n)
  })
})
