import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import * as Sample from "../../../src/hosts/http/contract/Sample.js"
import { endpoints } from "../../support/http/Contract.js"
import type { CreateResult, Envelope, Prediction, TransactionResult } from "../../support/http/DevService.js"
import { recorded, recordedBy, type Stand } from "../../support/http/Examples.js"
import * as Receiver from "../../support/http/Receiver.js"
import { aloneInFile } from "../../support/http/SharedService.js"
import * as CommandLine from "../../support/process/CommandLine.js"

const service = aloneInFile()

interface Estimate {
  readonly userOps: ReadonlyArray<{ readonly encodedUserOp: string; readonly userOpHash: string }>
}

describe("reference examples of endpoints whose answers depend on the moment", () => {
  it("recorded answers have the same members as today's", async () => {
    const { info } = service
    const { entryPoint, rpc, signer } = info.settings
    const { beaconAdminAddress, beaconAdminCreationCode, factory } = info.settings
    const settings = { rpc, entryPoint, signer }
    const accounts = [{ salt: "alice", walletCustody: 1 }]
    const [predicted] = await recorded<ReadonlyArray<Prediction>>(service, "/predict", {
      accounts,
      settings: { factory, beaconAdminAddress, beaconAdminCreationCode }
    })
    const wallet = String(predicted?.wallet)
    await service.fund(wallet)
    expect((await recorded<CreateResult>(service, "/create", { accounts, settings })).status).toBe(1)
    await recorded(service, "/check", { accounts, settings })

    const call = (funcSignature: string, funcParams: ReadonlyArray<string>) => ({
      salt: "alice",
      walletCustody: 1,
      to: info.token,
      funcSignature,
      funcParams
    })
    const mint = call("mint(address,uint256)", [wallet, "1000"])
    const transfer = call("transfer(address,uint256)", [service.signer.address, "250"])
    const executed = await recorded<TransactionResult>(service, "/execute", {
      operations: [mint, transfer],
      settings
    })
    expect(executed.status).toBe(1)

    const { userOps } = await recorded<Estimate>(service, "/estimateGas", {
      operations: [transfer],
      settings
    })
    const encoded = await recorded<TransactionResult>(service, "/executeEncoded", {
      operations: userOps.map(({ encodedUserOp, userOpHash }) => ({
        encodedUserOp,
        userOpHash,
        walletCustody: 1
      })),
      settings
    })
    expect(encoded.status).toBe(1)
    const { funcParams, funcSignature, to } = mint
    await recorded(service, "/transactSigner", { to, funcSignature, funcParams, settings: { rpc, signer } })
    await recorded(service, "/unstuck", { dryRun: true, settings: { rpc, signer } })
    await recorded(service, "/getSigner", { signer })
    await recorded(service, "/getbundleraddress", {})
  })

  it("recorded answers of webhooks and watches have today's members", async () => {
    const receiver = await Receiver.start()
    try {
      const { origin } = new URL(receiver.url)
      const origins: Stand = [
        [receiver.url, "https://example.com/castellan"],
        [origin, "https://example.com"]
      ]
      const { webhookId } = await recordedBy<{ readonly webhookId: string }>(
        service,
        "addWebhook",
        {},
        (added) => [...origins, [added.webhookId, Sample.requestId]],
        { url: receiver.url, kinds: ["final", "reopened"] }
      )
      const hook = { webhookId }
      const shown = (): Stand => [...origins, [webhookId, Sample.requestId]]
      await recordedBy(service, "listWebhooks", {}, shown)
      await recordedBy(service, "getWebhook", hook, shown)

      const { chainId, rpc, token } = service.info
      const { watchId } = await recordedBy<{ readonly watchId: string }>(
        service,
        "addWatch",
        {},
        (added) => [...shown(), [added.watchId, Sample.watchId]],
        {
          webhookId,
          contracts: [token],
          eventDef: "event Transfer(address indexed from, address indexed to, uint256 value)",
          fields: { to: Sample.recipient },
          fromBlock: "latest",
          confirmations: 3,
          chainId,
          rpc
        }
      )
      const watch = { watchId }
      const both = (): Stand => [...shown(), [watchId, Sample.watchId]]
      await recordedBy(service, "listWatches", {}, both)
      await recordedBy(service, "getWatch", watch, both)
      await recordedBy(service, "changeWatch", watch, both, { state: "paused" })
      await recordedBy(service, "removeWatch", watch, both)

      await recordedBy(service, "changeWebhook", hook, shown, { state: "paused" })
      await recordedBy(service, "rotateSecret", hook, shown, { overlapHours: 24 })
      await recordedBy(service, "listDead", hook, shown)
      await recordedBy(service, "redeliver", hook, shown, {})
      await recordedBy(service, "removeWebhook", hook, shown)
    } finally {
      receiver.stop()
    }
  })

  it("recorded answers of spending rules have today's members", async () => {
    const issue = async (scopes: string): Promise<{ readonly id: string; readonly key: string }> => {
      const command = ["keys", "create", "enterprise", "--scopes", scopes, "--json"]
      const config = { CASTELLAN_CONFIG: service.info.config }
      return JSON.parse(await Effect.runPromise(CommandLine.run(command, config)))
    }
    const { id, key } = await issue("read,policies")
    const subject = `key:${(await issue("write")).id}`
    const { example } = endpoints.find(({ name }) => name === "setPolicy") ?? {}
    const record = (name: string, request?: object) =>
      recordedBy(
        service,
        name,
        { subject },
        (answer: { readonly requestId?: string | null }) => [
          [`key:${id}`, "key:0123456789ab"],
          [subject, `key:${Sample.keyId}`],
          [answer.requestId ?? "none", Sample.requestId]
        ],
        request,
        key
      )
    await record("setPolicy", Object(example))
    await record("getPolicy")
    await record("getPolicyUsage")
    await record("listPolicies")
    await record("removePolicy")
    const { rpc, signer } = service.info.settings
    const evaluated = Object(endpoints.find((one) => one.name === "evaluatePolicies")?.example)
    const request = { ...evaluated.request, settings: { rpc, signer } }
    await record("evaluatePolicies", { ...evaluated, request })
  })

  it("recorded answers of the decision hook have today's members", async () => {
    const command = ["keys", "create", "enterprise", "--scopes", "policies", "--json"]
    const issued = await Effect.runPromise(
      CommandLine.run(command, { CASTELLAN_CONFIG: service.info.config })
    )
    const { id, key }: { readonly id: string; readonly key: string } = JSON.parse(issued)
    const { example } = endpoints.find(({ name }) => name === "setDecisionHook") ?? {}
    const record = (name: string, request?: object) =>
      recordedBy(
        service,
        name,
        {},
        ({ secret = "none" }: { readonly secret?: string }) => [
          [`key:${id}`, "key:0123456789ab"],
          [secret, "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="]
        ],
        request,
        key
      )
    await record("setDecisionHook", Object(example))
    await record("getDecisionHook")
    await record("removeDecisionHook")
  })

  it("recorded answers of top-ups have today's members", async () => {
    const command = ["keys", "create", "enterprise", "--scopes", "treasury", "--json"]
    const issued = await Effect.runPromise(
      CommandLine.run(command, { CASTELLAN_CONFIG: service.info.config })
    )
    const { id, key }: { readonly id: string; readonly key: string } = JSON.parse(issued)
    const { example } = endpoints.find(({ name }) => name === "setTopUp") ?? {}
    const { chainId: _, ...terms } = Object(example)
    const chainId = String(service.info.chainId)
    const stand = (): ReadonlyArray<readonly [string, string]> => [[`key:${id}`, "key:0123456789ab"]]
    await recordedBy(service, "setTopUp", { chainId }, stand, terms, key)
    await recordedBy(service, "getTopUp", { chainId }, stand, undefined, key)
  })

  it("recorded answers of requests and the service have today's members", async () => {
    const { rpc, settings, token } = service.info
    const paying = { to: Sample.recipient, value: "1", settings: { rpc, signer: settings.signer } }
    const accepted = async (path: string, body: object): Promise<string> => {
      const headers = { prefer: "respond-async", "request-metadata": '{"order":"4711"}' }
      const { body: said, status } = await service.ask<Envelope>(path, body, { headers })
      expect(status, JSON.stringify(said)).toBe(202)
      return said.requestId
    }
    const requestId = await accepted("/transactSigner", paying)
    expect((await service.request(`${requestId}?wait=60`)).body.state).toBe("final")
    const done = () => [[requestId, Sample.requestId] as const]
    await recordedBy(service, "getRequest", { requestId }, done)
    await recordedBy(service, "streamEvents", { requestId }, done)

    const [wallet] = await service.predict("alice")
    const validAfter = Math.floor(Date.now() / 1_000) + 86_400
    const later = await accepted("/execute", {
      operations: [
        {
          wallet,
          walletCustody: 1,
          to: token,
          funcSignature: "mint(address,uint256)",
          funcParams: [wallet, "1"],
          validAfter
        }
      ],
      settings
    })
    await recordedBy(service, "cancelRequest", { requestId: later }, () => [[later, Sample.requestId]])
    await recordedBy(
      service,
      "listRequests",
      {},
      (answer: { readonly requests: ReadonlyArray<{ readonly requestId: string }> }) =>
        answer.requests.flatMap(({ requestId }, n) => [
          [requestId, n === 0 ? Sample.requestId : requestId] as const
        ])
    )
    for (const name of ["live", "ready", "listNetworks", "getBundlerAddressByGet"])
      await recordedBy(service, name, {}, () => [])
  })
})
