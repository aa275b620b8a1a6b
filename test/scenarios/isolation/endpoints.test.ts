import { id } from "ethers"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { endpoints } from "../../support/http/Contract.js"
import type {
  Answer,
  CreateResult,
  Envelope,
  Estimate,
  Log,
  Prediction,
  TransactionResult
} from "../../support/http/DevService.js"
import { first } from "../../support/http/DevService.js"
import { begin, lesson, type Tenant, type TwoTenants } from "./TwoTenants.js"

let world: TwoTenants
let alice: Tenant
let bob: Tenant
/** A wallet of alice, by its address and its salt. */
let wallet: string
const salt = "shared between the two"
/** Alice's execution under an idempotency key. */
const idempotency = { "idempotency-key": "the-key-that-alice-chose" }
let hook: { readonly webhookId: string }
let watchId: string
let executed: { readonly request: unknown; readonly answer: Answer<TransactionResult> }

const operation = (to: string) => ({
  salt,
  walletCustody: 1,
  to,
  funcSignature: "mint(address,uint256)",
  funcParams: [to, "1"]
})

const predicted = async ({ ask, factory }: Tenant, name: string): Promise<string> => {
  const { beaconAdminAddress, beaconAdminCreationCode } = world.service.info.settings
  const { body } = await ask<ReadonlyArray<Prediction>>("/predict", {
    accounts: [{ salt: name, walletCustody: 1 }],
    settings: { factory, beaconAdminAddress, beaconAdminCreationCode }
  })
  return first(body).wallet
}

beforeAll(async () => {
  world = await begin()
  alice = world.alice
  bob = world.bob
  wallet = await predicted(alice, salt)
  await world.service.fund(wallet)
  const accounts = [{ salt, walletCustody: 1 }]
  const created = await alice.ask<CreateResult>("/create", { accounts, settings: alice.settings })
  expect(created.body.status).toBe(1)
  const request = { operations: [operation(world.service.info.token)], settings: alice.settings }
  executed = { request, answer: await alice.ask("/execute", request, idempotency) }
  expect(executed.answer.body).toMatchObject({ status: 1 })
  hook = (await webhook(alice, "POST", "", { url: "https://example.com/hook", kinds: ["expired"] })).body
  watchId = (await watchAsk(alice, "POST", "", watchOf(hook))).body.watchId
})
afterAll(() => world.service.stop())

interface Hook extends Envelope {
  readonly webhookId: string
  readonly state: string
  readonly webhooks: ReadonlyArray<unknown>
}
const webhook = ({ key }: Tenant, method: string, path: string, body?: unknown) =>
  world.service.ask<Hook>(`/webhooks${path}`, body, { key, method })

const none = "00000000-0000-4000-8000-000000000000"

/** Bob gets the same answer for alice's as for a missing one. */
const sameAsNone = async (
  ask: (id: string) => Promise<Answer<Envelope>>,
  id: string,
  code: string
): Promise<void> => {
  const [one, other] = [await ask(id), await ask(none)]
  expect([one.status, one.body.code]).toEqual([404, code])
  expect(lesson(one, id, none)).toEqual(lesson(other, id, none))
}
/** And alice's webhook stays unchanged. */
const alikeOf = async (method: string, path: string, body?: unknown) => {
  const { webhookId } = hook
  await sameAsNone((id) => webhook(bob, method, `/${id}${path}`, body), webhookId, "webhook_not_found")
  expect((await webhook(alice, "GET", `/${webhookId}`)).body).toMatchObject({ webhookId, state: "enabled" })
}

const watchAsk = ({ key }: Tenant, method: string, path: string, body?: unknown) =>
  world.service.ask<Hook & { readonly watchId: string; readonly watches: ReadonlyArray<unknown> }>(
    `/watches${path}`,
    body,
    { key, method }
  )

const watchOf = ({ webhookId }: { readonly webhookId: string }) => ({
  webhookId,
  eventDef: "event Watched(uint256 indexed n)",
  fields: { n: "1" },
  rpc: world.service.info.rpc
})

const alikeOfWatch = async (method: string, body?: unknown) => {
  await sameAsNone((id) => watchAsk(bob, method, `/${id}`, body), watchId, "watch_not_found")
  expect((await watchAsk(alice, "GET", `/${watchId}`)).body).toMatchObject({ watchId, state: "enabled" })
}
const settings = <Body = Envelope>({ treasurerKey }: Tenant, method: string, path: string, body?: unknown) =>
  world.service.ask<Body>(path, body, { key: treasurerKey, method })

const suppliers = { addresses: ["0x0000000000000000000000000000000000005001"] }
/** Alice has a list of this name, and bob gets the same answer for it as for a missing one. */
const alikeOfList = async (method: string, path = "") => {
  const named = (name: string) => `/policies/list:${name}`
  expect((await settings(alice, "PUT", named("suppliers"), suppliers)).status).toBe(200)
  const [one, other] = [
    await settings(bob, method, `${named("suppliers")}${path}`),
    await settings(bob, method, `${named("nobodys")}${path}`)
  ]
  expect([one.status, one.body.code]).toEqual([404, "policy_not_found"])
  expect(lesson(one, "suppliers", "nobodys")).toEqual(lesson(other, "suppliers", "nobodys"))
  expect((await settings(alice, "GET", named("suppliers"))).body).toMatchObject({ policy: suppliers })
}

/** The hook of alice stays unchanged while bob sets, reads and removes a hook. */
const hooksApart = async () => {
  const hookOf = (tenant: Tenant) => settings(tenant, "GET", "/decisionHook")
  const set = (tenant: Tenant, host: string) =>
    settings(tenant, "PUT", "/decisionHook", { url: `https://${host}.example.com/decide` })
  expect((await set(alice, "hers")).status).toBe(200)
  expect((await hookOf(bob)).body).toEqual({ decisionHook: null })
  await set(bob, "his")
  expect((await settings(bob, "DELETE", "/decisionHook")).status).toBe(200)
  const origin = "https://hers.example.com"
  expect((await hookOf(alice)).body).toMatchObject({ decisionHook: { origin } })
  await settings(alice, "DELETE", "/decisionHook")
}

const topUps = "/topups/31337"
const termsOf = (signer: unknown) => ({ signer, keep: "0", dailyCap: "0", targets: [] })

const requestId = () => executed.answer.headers.get("x-request-id") ?? ""

/** Bob gets the same answer for alice's as for a missing one; it does not reveal whether it exists. */
const alike = async (
  path: string,
  body: (named: string) => unknown,
  [existing, none]: readonly [string, string],
  expected: { readonly status: number; readonly code: string }
) => {
  const one = await bob.ask<Envelope>(path, body(existing))
  const other = await bob.ask<Envelope>(path, body(none))
  expect({ path, status: one.status, code: one.body.code }).toEqual({ path, ...expected })
  expect(lesson(one, existing, none)).toEqual(lesson(other, existing, none))
  return one
}

/** The endpoint knows no signer of alice when bob names it. */
const noSigner = (path: string, body: (signer: unknown) => object) =>
  alike(path, (clientId) => body({ clientId, versionId: "1" }), ["of alice", "of nobody"], {
    status: 401,
    code: "client_id_incorrect"
  })

const withSigner = (tenant: Tenant, signer: unknown) => ({ ...tenant.settings, signer })

/** A log of a contract's creation, whose event only an account that registered it can name. */
const emit = async (event: string): Promise<string> => {
  const { provider } = world.service
  const sender = alice.eoa
  const sent = await sender.sendTransaction({ data: `0x7f${id(event).slice(2)}60006000a1` })
  await provider.waitForTransaction(sent.hash)
  return sent.hash
}

const eventAbi = (name: string) => ({ type: "event", name, inputs: [], anonymous: false })

const cases = {
  predict: async () => {
    // A pure endpoint: it knows no account of the service.
    const settings = {
      factory: alice.factory,
      beaconAdminAddress: world.service.info.settings.beaconAdminAddress,
      beaconAdminCreationCode: world.service.info.settings.beaconAdminCreationCode
    }
    const request = { accounts: [{ salt, walletCustody: 1 }], settings }
    expect((await bob.ask("/predict", request)).body).toEqual((await alice.ask("/predict", request)).body)
  },
  check: async () => {
    const own = await bob.ask<ReadonlyArray<{ exists: boolean; wallet: string }>>("/check", {
      accounts: [{ salt, walletCustody: 1 }],
      settings: bob.settings
    })
    expect(own.body).toEqual([{ exists: false, wallet: await predicted(bob, salt), salt, error: null }])
    expect(first(own.body).wallet).not.toBe(wallet)
  },
  create: async () => {
    const funded = "funded and not created"
    const address = await predicted(alice, funded)
    await world.service.fund(address)
    const accounts = [{ salt: funded, walletCustody: 1 }]
    await noSigner("/create", (signer) => ({ accounts, settings: withSigner(bob, signer) }))
    const elsewhere = "0x1000000000000000000000000000000000000001"
    await alike(
      "/create",
      (factory) => ({ accounts, settings: { ...bob.settings, factory } }),
      [alice.factory, elsewhere],
      { status: 400, code: "factory_not_allowed" }
    )
    const byAddress = await bob.ask<Envelope>("/create", {
      accounts: [{ salt: funded, wallet: address, walletCustody: 1 }],
      settings: bob.settings
    })
    expect(byAddress.status).toBe(400)
    const own = await predicted(bob, funded)
    await world.service.fund(own)
    const { body } = await bob.ask<CreateResult>("/create", { accounts, settings: bob.settings })
    expect(first(body.returnData)[0]?.wallet).toBe(own)
    expect(await world.service.provider.getCode(address)).toBe("0x")
    expect(await world.service.provider.getBalance(address)).toBe(10n ** 18n)
    const hers = await alice.ask<CreateResult>("/create", { accounts, settings: alice.settings })
    expect(hers.body.status).toBe(1)
    expect(await world.service.provider.getCode(address)).not.toBe("0x")
  },
  execute: async () => {
    const operations = [operation(world.service.info.token)]
    await noSigner("/execute", (signer) => ({ operations, settings: withSigner(bob, signer) }))
    const nonce = await world.service.provider.getTransactionCount(bob.eoa.address)
    const byAddress = await bob.ask<Envelope>("/execute", {
      operations: [{ ...operations[0], salt: "", wallet }],
      settings: bob.settings
    })
    expect(byAddress.status).toBe(422)
    expect(byAddress.text).toContain("threshold not met")
    // The same salt is another wallet, which does not exist.
    const bySalt = await bob.ask<Envelope>("/execute", { operations, settings: bob.settings })
    expect([bySalt.status, bySalt.text]).toEqual([422, expect.stringContaining("wallet not deployed")])
    // Reveals neither the answer to alice's key nor its use: another body, another answer.
    for (const request of [executed.request, { operations, settings: bob.settings }]) {
      const plain = await bob.ask<Envelope>("/execute", request)
      const keyed = await bob.ask<Envelope>("/execute", request, idempotency)
      expect(lesson(keyed)).toEqual(lesson(plain))
      expect(keyed.text).not.toContain(executed.answer.body.txHash)
    }
    expect(await world.service.provider.getTransactionCount(bob.eoa.address)).toBe(nonce)
    const again = await alice.ask<TransactionResult>("/execute", executed.request, idempotency)
    expect(again.body.txHash).toBe(executed.answer.body.txHash)
  },
  estimateGas: async () => {
    const operations = [operation(world.service.info.token)]
    await noSigner("/estimateGas", (signer) => ({ operations, settings: withSigner(bob, signer) }))
    const { body } = await bob.ask<Estimate>("/estimateGas", { operations, settings: bob.settings })
    expect([body.status, body.error]).toEqual([0, expect.stringContaining("wallet not deployed")])
  },
  executeEncoded: async () => {
    const operations = [operation(world.service.info.token)]
    const { body } = await alice.ask<Estimate>("/estimateGas", { operations, settings: alice.settings })
    const { encodedUserOp, userOpHash } = first(body.userOps)
    const posted = { operations: [{ encodedUserOp, userOpHash, walletCustody: 1 }], settings: alice.settings }
    expect((await alice.ask<TransactionResult>("/executeEncoded", posted)).body.status).toBe(1)
    const again = await alice.ask<TransactionResult>("/executeEncoded", posted)
    expect(again.body.status).toBe(1)
    await noSigner("/executeEncoded", (signer) => ({ ...posted, settings: withSigner(bob, signer) }))
    // The chain shows its outcome publicly; the service hides it from bob.
    const his = await bob.ask<Envelope>("/executeEncoded", { ...posted, settings: bob.settings })
    expect(his.status).toBe(422)
    expect(his.text).not.toContain(again.body.txHash)
  },
  passkeyHash: async () => {
    const { signer: _, ...settings } = bob.settings
    const operations = [operation(world.service.info.token)]
    const { text } = await bob.ask("/passkeyHash", { operations, settings })
    expect(text).toContain("wallet not deployed")
    expect(text).not.toContain(wallet)
  },
  executePasskey: async () => {
    const operations = [operation(world.service.info.token)]
    const { body } = await alice.ask<Estimate>("/estimateGas", { operations, settings: alice.settings })
    const { encodedUserOp, userOpHash } = first(body.userOps)
    const text = (value: string) => Buffer.from(value).toString("base64")
    const validationData = {
      signature: text("s".repeat(64)),
      authenticatorData: text("a".repeat(37)),
      clientDataJSON: text("{}")
    }
    const { signer: _, ...settings } = bob.settings
    const posted = { encodedUserOp, userOpHash, validationData }
    const post = (more: object) =>
      bob.ask<Envelope>("/executePasskey", { operations: [posted], settings: { ...settings, ...more } })
    const his = await post({})
    expect(his.status).toBeGreaterThanOrEqual(400)
    expect(his.status).toBeLessThan(500)
    expect(his.text).not.toContain(alice.eoa.address)
    // Whether an endpoint uses the signer or not, alice's does not exist for bob.
    const named = async (clientId: string) =>
      lesson(await post({ signer: { clientId, versionId: "1" } }), clientId)
    expect(await named("of alice")).toEqual(await named("of nobody"))
  },
  transactSigner: async () => {
    const transfer = { to: bob.eoa.address, value: "1" }
    const before = await world.service.provider.getTransactionCount(alice.eoa.address)
    await noSigner("/transactSigner", (signer) => ({ ...transfer, settings: withSigner(bob, signer) }))
    expect(await world.service.provider.getTransactionCount(alice.eoa.address)).toBe(before)
  },
  unstuck: () => noSigner("/unstuck", (signer) => ({ settings: withSigner(bob, signer), dryRun: true })),
  getRequest: async () => {
    expect((await alice.get(`/requests/${requestId()}`)).status).toBe(200)
    await sameAsNone((id) => bob.get(`/requests/${id}`), requestId(), "request_not_found")
  },
  streamEvents: () => sameAsNone((id) => bob.get(`/requests/${id}/events`), requestId(), "request_not_found"),
  listRequests: async () => {
    const ids = async ({ get }: Tenant) => {
      const { body } = await get<{ readonly requests: ReadonlyArray<{ readonly requestId: string }> }>(
        "/requests?limit=100"
      )
      return body.requests.map((each) => each.requestId)
    }
    expect(await ids(alice)).toContain(requestId())
    expect(await ids(bob)).not.toContain(requestId())
  },
  cancelRequest: () =>
    sameAsNone(
      (id) => world.service.ask(`/requests/${id}`, undefined, { key: bob.key, method: "DELETE" }),
      requestId(),
      "request_not_found"
    ),
  addWebhook: async () => {
    expect((await webhook(alice, "GET", "")).body.webhooks).toHaveLength(1)
    expect((await webhook(bob, "GET", "")).body.webhooks).toEqual([])
  },
  listWebhooks: () => alikeOf("GET", ""),
  addWatch: async () => {
    const one = await watchAsk(bob, "POST", "", watchOf(hook))
    const other = await watchAsk(bob, "POST", "", watchOf({ webhookId: none }))
    expect([one.status, one.body.details[0]?.path]).toEqual([400, "webhookId"])
    expect(lesson(one, hook.webhookId, none)).toEqual(lesson(other, hook.webhookId, none))
    expect((await watchAsk(bob, "GET", "")).body.watches).toEqual([])
    expect((await watchAsk(alice, "GET", "")).body.watches).toHaveLength(1)
  },
  listWatches: () => alikeOfWatch("GET"),
  getWatch: () => alikeOfWatch("GET"),
  changeWatch: () => alikeOfWatch("PATCH", { state: "paused" }),
  removeWatch: () => alikeOfWatch("DELETE"),
  getWebhook: () => alikeOf("GET", ""),
  changeWebhook: () => alikeOf("PATCH", "", { state: "paused" }),
  removeWebhook: () => alikeOf("DELETE", ""),
  rotateSecret: () => alikeOf("POST", "/rotate", {}),
  listDead: () => alikeOf("GET", "/dead"),
  redeliver: () => alikeOf("POST", "/redeliver", {}),
  read: async () => {
    const abi = { type: "error", name: "JustRefused", inputs: [] }
    const request = {
      reads: [
        { to: world.service.info.reverter, funcSignature: "failCustomEmpty()", returnSignature: "uint256" }
      ],
      rpc: world.service.info.rpc
    }
    const before = await bob.ask<ReadonlyArray<{ errors: string }>>("/read", request)
    expect((await alice.ask("/addError", { errorABI: abi })).status).toBe(200)
    const hers = await alice.ask<ReadonlyArray<{ errors: string }>>("/read", request)
    expect(first(hers.body).errors).toContain("JustRefused")
    const after = await bob.ask<ReadonlyArray<{ errors: string }>>("/read", request)
    expect(after.body).toEqual(before.body)
    expect(first(after.body).errors).not.toContain("JustRefused")
  },
  receipt: async () => {
    expect((await alice.ask("/addEvent", { eventABI: eventAbi("OfAliceAlone") })).status).toBe(200)
    const txHash = await emit("OfAliceAlone()")
    const logs = async ({ ask }: Tenant) => {
      const request = { txHashes: [txHash], rpc: world.service.info.rpc }
      const { body } = await ask<{ receipts: ReadonlyArray<{ logs: ReadonlyArray<Log> }> }>(
        "/receipt",
        request
      )
      return first(body.receipts).logs.map(({ eventName }) => eventName)
    }
    expect(await logs(alice)).toEqual(["OfAliceAlone"])
    expect(await logs(bob)).toEqual([null])

    // A hash that the service replaced leads alice to the mined one, and bob nowhere.
    await world.service.automine(false)
    const sending = alice.ask<TransactionResult>("/transactSigner", {
      to: alice.eoa.address,
      value: "1",
      settings: alice.settings
    })
    const { provider } = world.service
    const latest = await provider.getTransactionCount(alice.eoa.address, "latest")
    await expect
      .poll(() => provider.getTransactionCount(alice.eoa.address, "pending"), { timeout: 10_000 })
      .toBeGreaterThan(latest)
    const replaced = await alice.ask<TransactionResult & { replaced: ReadonlyArray<{ oldTxHash: string }> }>(
      "/unstuck",
      { settings: alice.settings, dryRun: true }
    )
    const { oldTxHash } = first(replaced.body.replaced)
    const unstuck = alice.ask("/unstuck", { settings: alice.settings })
    await expect.poll(() => provider.getTransaction(oldTxHash), { timeout: 10_000 }).toBeNull()
    await world.service.automine(true)
    await Promise.all([sending, unstuck])
    type Receipts = { receipts: ReadonlyArray<{ requestedHash?: string }>; unknown: ReadonlyArray<string> }
    const ask = ({ ask }: Tenant) =>
      ask<Receipts>("/receipt", { txHashes: [oldTxHash], rpc: world.service.info.rpc })
    expect((await ask(alice)).body.receipts).toMatchObject([{ requestedHash: oldTxHash }])
    expect((await ask(bob)).body).toMatchObject({ receipts: [], unknown: [oldTxHash] })
  },
  filterEvent: () => unregistered("/filterEvent", "FilteredByAlice"),
  getEvents: () => unregistered("/getEvents", "GotByAlice"),
  addEvent: async () => {
    const add = ({ ask }: Tenant) => ask("/addEvent", { eventABI: eventAbi("Added") })
    const hers = await add(alice)
    expect((await add(bob)).body).toEqual(hers.body)
  },
  addError: async () => {
    const add = ({ ask }: Tenant) =>
      ask("/addError", { errorABI: { type: "error", name: "Wrong", inputs: [] } })
    const hers = await add(alice)
    expect((await add(bob)).body).toEqual(hers.body)
  },
  sign: () => noSigner("/sign", (signer) => ({ messages: ["m"], signer })),
  signMessage: async () => {
    const content = { message: "m" }
    const named = { salt, walletCustody: 1, ...content }
    await noSigner("/signMessage", (signer) => ({ ...named, settings: withSigner(bob, signer) }))
    const account = { salt: "of the other factory", walletCustody: 1 }
    const settings = { ...bob.settings, factory: alice.factory }
    const refused = await bob.ask<Envelope>("/signMessage", { account, ...content, settings })
    expect([refused.status, refused.body.code]).toEqual([400, "factory_not_allowed"])
    // The chain shows her wallet to every caller; no signer of bob owns it.
    const hers = { wallet, walletCustody: 1, ...content, settings: bob.settings }
    expect((await bob.ask("/signMessage", hers)).body).toMatchObject({ status: 0, have: 0, need: 1 })
  },
  getSigner: async () => {
    await noSigner("/getSigner", (signer) => ({ signer }))
    // Both have a client of this name, and neither learns of the other's versions.
    const named = (versionId: string) => ({ signer: { clientId: "hsm", versionId } })
    const own = await bob.ask<{ address: string }>("/getSigner", named("8"))
    expect(own.body.address).toBe(bob.eoa.address)
    await alike("/getSigner", named, ["7", "9"], { status: 401, code: "version_not_found" })
    const asset = (assetId: string) => ({ signer: { clientId: "hsm", assetId } })
    await alike("/getSigner", asset, ["7", "9"], { status: 401, code: "asset_not_supported" })
    // A system key has no name.
    await alike(
      "/getSigner",
      (clientId) => ({ signer: { clientId, versionId: "1" } }),
      ["deployer", "of nobody"],
      {
        status: 401,
        code: "client_id_incorrect"
      }
    )
  },
  getBundlerAddress: async () => {
    const { body } = await bob.ask("/getbundleraddress", {})
    expect(body).toEqual((await alice.ask("/getbundleraddress", {})).body)
  },
  getBundlerAddressByGet: async () => {
    expect((await bob.get("/getbundleraddress")).body).toEqual((await alice.get("/getbundleraddress")).body)
  },
  listPolicies: async () => {
    await alikeOfList("GET")
    expect((await settings(bob, "GET", "/policies")).body).toEqual({ policies: [] })
  },
  getPolicy: () => alikeOfList("GET"),
  getPolicyUsage: () => alikeOfList("GET", "/usage"),
  removePolicy: () => alikeOfList("DELETE"),
  setPolicy: async () => {
    await alikeOfList("GET")
    const his = { addresses: [] }
    expect((await settings(bob, "PUT", "/policies/list:suppliers", his)).body).toMatchObject({ version: 1 })
    const hers = await settings(alice, "GET", "/policies/list:suppliers")
    expect(hers.body).toMatchObject({ policy: suppliers })
    await settings(bob, "DELETE", "/policies/list:suppliers")
  },
  evaluatePolicies: async () => {
    const asKey = (keyId: string) =>
      settings(bob, "POST", "/policies/evaluate", {
        endpoint: "/transactSigner",
        request: { to: wallet, value: "1", settings: { rpc: bob.settings.rpc, signer: bob.settings.signer } },
        keyId
      })
    const [one, other] = [await asKey(alice.keyId), await asKey("0".repeat(12))]
    expect([one.status, one.body.code]).toEqual([400, "invalid_request"])
    expect(lesson(one, alice.keyId)).toEqual(lesson(other, "0".repeat(12)))
  },
  setDecisionHook: hooksApart,
  getDecisionHook: hooksApart,
  removeDecisionHook: hooksApart,
  setTopUp: async () => {
    const asked = (clientId: string) => settings(bob, "PUT", topUps, termsOf({ clientId, versionId: "1" }))
    const [one, other] = [await asked("of alice"), await asked("of nobody")]
    expect([one.status, one.body.code]).toEqual([401, "client_id_incorrect"])
    expect(lesson(one, "of alice")).toEqual(lesson(other, "of nobody"))
  },
  getTopUp: async () => {
    expect((await settings(alice, "PUT", topUps, termsOf(alice.settings.signer))).status).toBe(200)
    expect((await settings(bob, "GET", topUps)).body).toEqual({ topUp: null })
  },
  listNetworks: async () => {
    const hers = await alice.get("/networks")
    const his = await bob.get("/networks")
    expect(hers.text).toContain(alice.factory)
    expect(his.text).toContain(bob.factory)
    for (const secret of [alice.factory, alice.eoa.address, wallet]) expect(his.text).not.toContain(secret)
  }
}

/** The event is alice's; to bob no event of the name is registered. */
const unregistered = async (path: string, name: string) => {
  expect((await alice.ask("/addEvent", { eventABI: eventAbi(name) })).status).toBe(200)
  await emit(`${name}()`)
  const request = (eventName: string) => ({
    eventName,
    fromBlock: "0x0",
    toBlock: "latest",
    rpc: world.service.info.rpc
  })
  const hers = await alice.ask<{ events?: unknown; txHashes?: unknown }>(path, request(name))
  expect(hers.body.events ?? hers.body.txHashes).toHaveLength(1)
  await alike(path, request, [name, "NobodysEvent"], { status: 400, code: "event_not_registered" })
}

describe("one account neither sees nor uses another's resources at", () => {
  it("every endpoint that needs a key: each has its case here", () => {
    const named = endpoints.filter(({ withKey }) => withKey).map(({ name }) => name)
    expect(Object.keys(cases).sort()).toEqual(named.sort())
  })

  for (const [name, run] of Object.entries(cases))
    it(name, async () => {
      await run()
    })
})
