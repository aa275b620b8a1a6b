import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { NonceManager, Wallet } from "ethers"
import { deploySuite, suiteOf } from "../../../src/hosts/cli/deploy/Suite.js"
import { devKeys } from "../../../src/hosts/cli/dev/DevKeys.js"
import * as Wiring from "../../../src/hosts/Wiring.js"
import {
  type Answer,
  anvilKey,
  type DevService,
  type Envelope,
  start
} from "../../support/http/DevService.js"

/** One of the two accounts, as its own client sees the service. */
export interface Tenant {
  readonly key: string
  /** With the scopes `policies` and `treasury`. */
  readonly treasurerKey: string
  /** Id of `key`. */
  readonly keyId: string
  readonly factory: string
  readonly eoa: Wallet
  readonly settings: {
    readonly rpc: string
    readonly entryPoint: string
    readonly signer: { readonly clientId: string; readonly versionId: string }
  }
  readonly ask: <Body>(
    path: string,
    body: unknown,
    headers?: Readonly<Record<string, string>>
  ) => Promise<Answer<Body>>
  readonly get: <Body>(path: string) => Promise<Answer<Body>>
}

export interface TwoTenants {
  readonly service: DevService
  readonly alice: Tenant
  readonly bob: Tenant
}

const pepper = "a pepper of the two tenants"

const issue = () => Effect.runPromise(Wiring.issueKey(Redacted.make(pepper)))

const suiteKeys = {
  deployer: devKeys.deployer.address,
  owner: devKeys.factoryOwner.address,
  beaconOwner: devKeys.beaconOwner.address,
  sponsor: devKeys.sponsor.address
}

/** The same suite with a separate factory. */
const bobsKeys = { ...suiteKeys, owner: anvilKey(9).address }

/**
 * A service on a chain with two accounts that share nothing: each has a key, a factory, a signer. Both may call a
 * client by the same name.
 */
export const begin = async (config: Readonly<Record<string, unknown>> = {}): Promise<TwoTenants> => {
  const keys = { alice: await issue(), bob: await issue() }
  const treasurers = { alice: await issue(), bob: await issue() }
  const eoas = { alice: anvilKey(7), bob: anvilKey(8) }
  const factories = { alice: suiteOf(suiteKeys).factory, bob: suiteOf(bobsKeys).factory }
  const names = ["alice", "bob"] as const
  const chainId = 31337
  const service = await start({
    network: { sharedFactory: false, factory: undefined },
    config: {
      ...config,
      keyPepper: pepper,
      accounts: names.map((id) => ({
        id,
        name: id,
        tier: "enterprise",
        keys: [{ hash: keys[id].hash }, { hash: treasurers[id].hash, scopes: ["policies", "treasury"] }],
        networks: [{ chainId, factory: factories[id] }]
      })),
      signers: names.flatMap((id) => [
        { accounts: [id], clientId: `of ${id}`, versionId: "1", privateKey: eoas[id].privateKey },
        {
          accounts: [id],
          clientId: "hsm",
          versionId: id === "alice" ? "7" : "8",
          privateKey: eoas[id].privateKey
        }
      ])
    }
  })
  const { provider } = service
  await deploySuite(new NonceManager(new Wallet(devKeys.beaconOwner.privateKey, provider)), bobsKeys)
  const tenant = (id: (typeof names)[number]): Tenant => {
    const key = Redacted.value(keys[id].key)
    return {
      key,
      treasurerKey: Redacted.value(treasurers[id].key),
      keyId: keys[id].hash.slice(0, 12),
      factory: factories[id],
      eoa: eoas[id].connect(provider),
      settings: {
        rpc: service.info.rpc,
        entryPoint: service.info.entryPoints["v0.7"],
        signer: { clientId: `of ${id}`, versionId: "1" }
      },
      ask: (path, body, headers = {}) => service.ask(path, body, { key, headers }),
      get: (path) => service.ask(path, undefined, { key, method: "GET" })
    }
  }
  return { service, alice: tenant("alice"), bob: tenant("bob") }
}

/** The informative part of a refusal: all fields except its id and the names that the caller sent. */
export const lesson = (answer: Answer<Envelope>, ...sent: ReadonlyArray<string>): unknown => {
  const { requestId: _, ...rest } = answer.body
  let text = JSON.stringify(rest)
  for (const name of sent) text = text.replaceAll(name, "SENT")
  return { status: answer.status, body: JSON.parse(text), retryAfter: answer.headers.get("retry-after") }
}
