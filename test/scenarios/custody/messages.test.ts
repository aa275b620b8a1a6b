import * as Effect from "effect/Effect"
import { AbiCoder, dataSlice, hashMessage, id, TypedDataEncoder, Wallet } from "ethers"
import { beforeAll, describe, expect, it } from "vitest"
import * as SignMessage from "../../../src/application/endpoints/signing/SignMessage.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Authenticator from "../../support/custody/Authenticator.js"
import * as Journey from "../../support/custody/Journey.js"
import { Address, keyOf, startStack } from "../../support/stack/Stack.js"
import { assertion, configOf, ecdsa, indexIn, personal } from "../../support/suite/Keys.js"
import { type Config, mixedProof } from "../../support/suite/Layouts.js"
import { mined } from "../../support/suite/Receipt.js"
import * as UniversalValidator from "../../support/suite/UniversalValidator.js"
import { use } from "../../support/Use.js"

/** Messages signed as wallets; judged by viem's universal validator on the chain. */

const stack = use(startStack)
let journey: Journey.Journey
beforeAll(async () => {
  journey = Journey.make(stack, "v0.7")
})

const [own, spare, alice, mallory] = [keyOf(1), keyOf(6), new Wallet(id("alice")), new Wallet(id("mallory"))]
const [phone, tablet] = [Authenticator.make(), Authenticator.make()]
const ownRef = { clientId: "dev", versionId: "1" }
const base64 = ({ spki }: Authenticator.Authenticator) => spki.toString("base64")

type Proofs = NonNullable<SignMessage.Request["proofs"]>
type Given = Omit<SignMessage.Request, "settings" | "proofs">

const signature = (proof: string) => ({ signature: Hex.unsafe(proof) })
const touched = (authenticator: Authenticator.Authenticator) => (hash: string) => ({
  validationData: authenticator.get(hash)
})
const inked =
  (...owners: ReadonlyArray<Wallet>) =>
  (hash: string) =>
    signature(ecdsa(hash, ...owners))

interface Keys {
  readonly config: Config
  /** Keys of the account that sign. */
  readonly settings: object
  /** Proofs of the other validators, posted one after the other. */
  readonly others: ReadonlyArray<(hash: string) => Proofs[number]>
}

interface Case {
  readonly custody: 1 | 2 | 3 | 4 | 5
  readonly account: object
  readonly before: Keys
  readonly after: Keys
}

const both = { signer: ownRef, cosigners: [Journey.second] }
const cases: ReadonlyArray<Case> = [
  {
    custody: 1,
    account: {},
    before: { config: configOf(1, [own]), settings: { signer: ownRef }, others: [] },
    after: {
      config: configOf(1, [alice]),
      settings: {},
      others: [(hash) => signature(personal(hash, alice))]
    }
  },
  {
    custody: 2,
    account: { passkeyPubKey: [base64(phone)] },
    before: { config: configOf(2, [own], [phone.passkey]), settings: { signer: ownRef }, others: [] },
    after: { config: configOf(2, [own], [tablet.passkey]), settings: {}, others: [touched(tablet)] }
  },
  {
    custody: 3,
    account: { signers: [alice.address, ownRef, Journey.second], threshold: "2" },
    before: {
      config: configOf(3, [own, spare, alice], [], 2),
      settings: { signer: ownRef },
      others: [inked(alice)]
    },
    after: {
      config: configOf(3, [alice, mallory], [], 2),
      settings: {},
      others: [inked(alice), inked(mallory)]
    }
  },
  {
    custody: 4,
    account: { signers: [ownRef, Journey.second], passkeyPubKey: [base64(phone)], threshold: "2" },
    before: {
      config: configOf(4, [own, spare], [phone.passkey], 2),
      settings: { signer: ownRef },
      others: [touched(phone)]
    },
    after: {
      config: configOf(4, [own, alice], [phone.passkey, tablet.passkey], 4),
      settings: { signer: ownRef },
      others: [inked(alice), touched(phone), touched(tablet)]
    }
  },
  {
    custody: 5,
    account: { passkeyPubKey: [base64(phone)] },
    before: { config: configOf(5, [], [phone.passkey]), settings: {}, others: [touched(phone)] },
    after: { config: configOf(5, [], [tablet.passkey]), settings: {}, others: [touched(tablet)] }
  }
]

const post = (request: Given, settings: object = {}, proofs?: Proofs) =>
  SignMessage.run(stack.caller(), {
    ...request,
    ...(proofs !== undefined && { proofs }),
    settings: { rpc: stack.settings.rpc, ...settings }
  })

/** Posts until the threshold is met: each post adds one proof, and returns their number. */
const signed = async (request: Given, { config, others, settings }: Keys) => {
  const proofs: Array<Proofs[number]> = []
  for (;;) {
    const answer = await stack.ask(post(request, settings, proofs))
    if (answer.status === 1) {
      expect(proofs).toHaveLength(others.length)
      return answer
    }
    const named = config.threshold - others.length
    expect(answer).toEqual({
      status: 0,
      signingHash: expect.stringMatching(/^0x[0-9a-f]{64}$/),
      have: named + proofs.length,
      need: config.threshold
    })
    const next = others[proofs.length]
    if (next === undefined) throw new Error("the threshold is never met")
    proofs.push(next(answer.signingHash))
  }
}

const document = {
  types: {
    Order: [
      { name: "items", type: "Item[]" },
      { name: "total", type: "uint256" }
    ],
    Item: [{ name: "text", type: "string" }]
  },
  primaryType: "Order",
  domain: { name: "Shop", version: "2", chainId: 31337, verifyingContract: mallory.address },
  message: { items: [{ text: "lamp" }, { text: "oil" }], total: "12" }
}
const contents: ReadonlyArray<readonly [string, Given, string]> = [
  ["a text", { message: "hello" }, hashMessage("hello")],
  ["32 bytes", { message: id("x") }, hashMessage(Buffer.from(id("x").slice(2), "hex"))],
  [
    "typed data",
    { typedData: document },
    TypedDataEncoder.hash(document.domain, document.types, document.message)
  ],
  [
    "typed data of one struct",
    {
      typedData: {
        ...document,
        types: { Mail: document.types.Item },
        primaryType: "Mail",
        message: { text: "m" }
      }
    },
    TypedDataEncoder.hash(document.domain, { Mail: document.types.Item }, { text: "m" })
  ]
]

const accepted = (wallet: string, hash: string, signature: string) =>
  UniversalValidator.isValid(stack.provider, wallet, hash, signature)

const accountOf = ({ account, custody }: Case, salt: string) =>
  ({ salt, walletCustody: custody, ...account }) as Journey.Account & { readonly salt: string }

const setConfig = (wallet: Address.Address, { custody, owners, passkeys, threshold }: Config) => ({
  wallet,
  walletCustody: 0 as const,
  to: wallet,
  funcSignature: "setConfig((uint8,uint8,address[],(bytes32,bytes32)[]))",
  funcParams: [[String(custody), String(threshold), owners, passkeys.map(({ x, y }) => [x, y])]]
})

const rotate = async ({ after, custody }: Case, wallet: Address.Address) => {
  const operation = setConfig(wallet, after.config)
  if (custody !== 5) {
    expect((await stack.ask(journey.execute(operation, both))).status).toBe(1)
    return
  }
  const op = await journey.hashed(operation)
  expect((await stack.ask(journey.executePasskey(op, phone.get(op.signingHash)))).status).toBe(1)
}

describe.each(cases)("messages of custody $custody", (one) => {
  it("messages of a deployed wallet are valid, and after a rotation only those of the new keys", async () => {
    const wallet = await journey.created(accountOf(one, `deployed ${one.custody}`))
    const older: Array<readonly [hash: string, signature: string]> = []
    for (const [what, content, hash] of contents) {
      const by = { wallet, walletCustody: one.custody }
      const answer = await signed({ ...by, ...content }, one.before)
      expect(answer).toMatchObject({ status: 1, wallet, hash, validUntil: 0 })
      expect([what, await accepted(wallet, hash, answer.signature)]).toEqual([what, true])
      expect([what, await accepted(wallet, id("another"), answer.signature)]).toEqual([what, false])
      older.push([hash, answer.signature])
    }
    await rotate(one, wallet)
    for (const [hash, old] of older) expect(await accepted(wallet, hash, old)).toBe(false)
    for (const [what, content, hash] of contents) {
      const answer = await signed({ wallet, walletCustody: 0, ...content }, one.after)
      expect([what, await accepted(wallet, hash, answer.signature)]).toEqual([what, true])
    }
  })

  it("messages of an undeployed wallet are valid for an hour, and longer once it is deployed", async () => {
    const account = accountOf(one, `undeployed ${one.custody}`)
    const wallet = await journey.addressOf(account.salt, account.walletCustody)
    const answers: Array<readonly [hash: string, signature: string]> = []
    for (const [what, content, hash] of contents) {
      const answer = await signed({ account, ...content }, one.before)
      expect(answer).toMatchObject({ status: 1, wallet, hash, validUntil: (await stack.now()) + 3600 })
      expect([what, await accepted(wallet, hash, answer.signature)]).toEqual([what, true])
      expect([what, await accepted(wallet, id("another"), answer.signature)]).toEqual([what, false])
      answers.push([hash, answer.signature])
    }
    expect(await stack.provider.getCode(wallet)).toBe("0x")
    await stack.later(3601)
    for (const [hash, signature] of answers) expect(await accepted(wallet, hash, signature)).toBe(false)
    await journey.created(account)
    for (const [hash, signature] of answers) expect(await accepted(wallet, hash, signature)).toBe(true)
  })
})

describe("the authorisation in a message of an undeployed wallet", () => {
  it("lets any EOA deploy the wallet as described", async () => {
    const account = { salt: "by anybody", walletCustody: 1 as const }
    const wallet = await journey.addressOf(account.salt, 1)
    const { signature } = await signed({ account, message: "m" }, { ...(cases[0] as Case).before })
    const [factory, data] = AbiCoder.defaultAbiCoder().decode(
      ["address", "bytes", "bytes"],
      dataSlice(signature, 0, (signature.length - 2) / 2 - 32)
    )
    expect(factory).toBe(stack.suite.factory)
    await mined(await stack.faucet.sendTransaction({ to: factory, data }))
    expect(await journey.configurationOf(wallet)).toEqual(configOf(1, [own]))
    const deployed = await stack.ask(post({ account, message: "m" }, { signer: ownRef }))
    expect(deployed).toMatchObject({ status: 1, validUntil: 0 })
  })
})

describe("an authorisation for another configuration", () => {
  const account = { salt: "contended", walletCustody: 1 as const }
  const bySpare = () => post({ account, message: "m" }, { signer: Journey.second })

  it("is refused by /signMessage and /create until the first authorisation is over", async () => {
    await stack.fund(await journey.addressOf(account.salt, 1), 10n ** 18n)
    expect(await stack.ask(post({ account, message: "m" }, { signer: ownRef }))).toMatchObject({ status: 1 })
    const pending = { code: "deployment_pending" }
    expect(await stack.refused(bySpare())).toMatchObject(pending)
    expect(await stack.refused(journey.create([account], { signer: Journey.second }))).toMatchObject(pending)
    await stack.later(3601)
    expect(await stack.ask(bySpare())).toMatchObject({ status: 1 })
  })
})

/** A life in which some nodes say that wallets refuse every signature. */
const whereRefused = (isOf: (access: unknown) => boolean) =>
  stack.begin({
    wrapChain: (nodes) => ({
      connect: (url, access) =>
        Effect.map(nodes.connect(url, access), (client) => ({
          ...client,
          call: (call, ...more) =>
            isOf(access) && call.data.startsWith("0x1626ba7e")
              ? Effect.succeed({ success: true, data: Hex.unsafe("0xffffffff".padEnd(66, "0")) })
              : client.call(call, ...more)
        }))
    })
  })

describe("a wallet that refuses its own signature", () => {
  it("keeps the signature in the service: 422", async () => {
    const wallet = await journey.created({ salt: "contrary", walletCustody: 1 })
    const life = whereRefused((access) => access === "operator")
    const request = post({ wallet, walletCustody: 1, message: "m" }, { signer: ownRef })
    const failure = await life.runPromise(Effect.flip(request))
    await life.dispose()
    expect(failure).toMatchObject({
      code: "invalid_signature",
      details: [{ message: expect.stringContaining("refuses the signature") }]
    })
  })

  it("answers at the operator's node, whatever the caller's node says", async () => {
    const wallet = await journey.created({ salt: "slandered", walletCustody: 1 })
    const life = whereRefused((access) => access !== "operator")
    const answer = await life.runPromise(post({ wallet, walletCustody: 1, message: "m" }, { signer: ownRef }))
    await life.dispose()
    expect(answer).toMatchObject({ status: 1, wallet })
  })
})

describe("a chain without a node of the operator", () => {
  it("messages of deployed wallets go by the caller's node, others are refused", async () => {
    const wallet = await journey.created({ salt: "by the caller's node", walletCustody: 1 })
    const life = stack.begin({ profile: { rpc: null } })
    const deployed = { wallet, walletCustody: 1 as const, message: "m" }
    const other = { account: { salt: "without a node", walletCustody: 1 as const }, message: "m" }
    const answer = await life.runPromise(post(deployed, { signer: ownRef }))
    const failure = await life.runPromise(Effect.flip(post(other, { signer: ownRef })))
    await life.dispose()
    expect([answer, failure]).toMatchObject([{ status: 1, wallet }, { code: "operator_rpc_missing" }])
  })
})

describe("refusals of /signMessage", () => {
  const wallet = () => journey.addressOf("refusals", 3)
  const [, , multisig] = cases as readonly [Case, Case, Case]
  beforeAll(async () => {
    await journey.created(accountOf(multisig, "refusals"))
  })

  const message = { message: "m" }
  const by = { salt: "refusals", walletCustody: 3 as const }
  const ofDomain = (name: string) => ({ typedData: { ...document, domain: { ...document.domain, name } } })
  it.each<readonly [string, Given, object, string, string]>([
    ["no content", by, {}, "message", "either message or typedData"],
    [
      "two contents",
      { ...by, ...message, typedData: document },
      {},
      "message",
      "either message or typedData"
    ],
    ["typed data as text", { ...by, message: JSON.stringify(document) }, {}, "message", "as typedData"],
    [
      "a document of castellan",
      { ...by, ...ofDomain("castellan") },
      {},
      "typedData.domain.name",
      "another domain"
    ],
    [
      "approvals",
      { ...by, ...ofDomain("castellan approvals") },
      {},
      "typedData.domain.name",
      "another domain"
    ],
    ["an op's document", { ...by, ...ofDomain("ERC4337") }, {}, "typedData.domain.name", "another domain"],
    [
      "a damaged document",
      { ...by, typedData: { ...document, primaryType: "X" } },
      {},
      "typedData",
      "one of types"
    ],
    ["a long message", { ...by, message: "m".repeat(65_537) }, {}, "message", "at most 65536"],
    ["no custody", { salt: "refusals", ...message }, {}, "walletCustody", "expected either"],
    ["another custody", { wallet: "", salt: "", ...message, walletCustody: 1 }, {}, "salt", "salt or wallet"],
    ["a wallet and an account", { ...by, account: by, ...message }, {}, "walletCustody", "expected either"],
    [
      "an account without an owner",
      { account: { salt: "ownerless", walletCustody: 1 }, ...message },
      {},
      "settings.signer",
      "owner"
    ],
    [
      "an account that lacks a field",
      { account: { salt: "keyless", walletCustody: 5 }, ...message },
      {},
      "account.passkeyPubKey",
      "is required"
    ]
  ])("400 for %s", async (_, request, settings, path, text) => {
    expect(await stack.refused(post(request, settings))).toMatchObject({
      _tag: "InvalidRequest",
      details: [{ path, message: expect.stringContaining(text) }]
    })
  })

  it("400 for the custody of another wallet", async () => {
    const request = { wallet: await wallet(), walletCustody: 1 as const, ...message }
    expect(await stack.refused(post(request))).toMatchObject({ code: "custody_mismatch" })
  })

  it("400 for a factory that is not the account's own", async () => {
    const settings = { factory: Address.unsafe(mallory.address), signer: ownRef }
    const account = { salt: "foreign", walletCustody: 1 as const }
    expect(await stack.refused(post({ account, ...message }, settings))).toMatchObject({
      code: "factory_not_allowed"
    })
  })

  it("401 for a wallet that is not deployed and a key without the scope write", async () => {
    const caller = stack.caller()
    const request = {
      account: { salt: "scope", walletCustody: 1 as const },
      ...message,
      settings: stack.settings
    }
    const principal = { ...caller.principal, scopes: new Set(["sign"] as const) }
    expect(await stack.refused(SignMessage.run({ ...caller, principal }, request))).toMatchObject({
      code: "scope_missing"
    })
  })

  it("422 for a wallet that is not deployed and not described, and for one described otherwise", async () => {
    const request = { salt: "nobody", walletCustody: 1 as const, ...message }
    expect(await stack.refused(post(request))).toMatchObject({
      code: "wallet_not_deployed",
      details: [{ message: expect.stringContaining("account") }]
    })
    const account = { ...accountOf(multisig, "refusals"), threshold: "1" }
    expect(await stack.refused(post({ account, ...message }, { signer: ownRef }))).toMatchObject({
      code: "account_exists"
    })
  })

  it("422 for other code at the address", async () => {
    const request = { wallet: stack.suite.factory, walletCustody: 0 as const, ...message }
    expect(await stack.refused(post(request))).toMatchObject({ code: "wallet_not_supported" })
  })

  it("422 for proofs that are wrong, of a stranger or of one validator twice", async () => {
    const waiting = await stack.ask(post({ ...by, ...message }))
    if (waiting.status === 1) throw new Error("nobody signed")
    const { signingHash } = waiting
    const proofs: ReadonlyArray<readonly [Proofs, string, string]> = [
      [[signature(ecdsa(signingHash, mallory))], "proofs[0].signature", "by no owner"],
      [[signature(ecdsa(id("x"), alice))], "proofs[0].signature", "by no owner"],
      [[signature("0x1234")], "proofs[0].signature", "signatures of 65 bytes"],
      [
        [inked(alice)(signingHash), signature(personal(signingHash, alice))],
        "proofs[1].signature",
        "already"
      ],
      [[inked(alice, alice)(signingHash)], "proofs[0].signature", "already"],
      [[touched(phone)(signingHash)], "proofs[0].validationData", "none of the wallet's passkeys"]
    ]
    for (const [given, path, text] of proofs)
      expect(await stack.refused(post({ ...by, ...message }, both, given))).toMatchObject({
        code: "invalid_signature",
        details: [{ path, message: expect.stringContaining(text) }]
      })
    const both400 = { ...inked(alice)(signingHash), ...touched(phone)(signingHash) }
    expect(await stack.refused(post({ ...by, ...message }, {}, [both400]))).toMatchObject({
      code: "invalid_request",
      details: [{ path: "proofs[0]" }]
    })
  })

  it("takes the ABI form of several validators as one proof", async () => {
    const salt = "in one"
    const four = cases[3] as Case
    const wallet = await journey.created(accountOf(four, salt))
    const request = { wallet, walletCustody: 4 as const, ...message }
    const waiting = await stack.ask(post(request))
    if (waiting.status === 1) throw new Error("nobody signed")
    const { signingHash } = waiting
    const { config } = four.before
    const part = assertion(signingHash, phone.passkey, { index: indexIn(config, phone.passkey) })
    const answer = await stack.ask(
      post(request, {}, [signature(mixedProof(ecdsa(signingHash, spare), [part]))])
    )
    if (answer.status === 0) throw new Error("the threshold is met")
    expect(await accepted(wallet, answer.hash, answer.signature)).toBe(true)
  })
})
