import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { Contract, computeAddress, Wallet } from "ethers"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { suiteOf } from "../../../src/hosts/cli/deploy/Suite.js"
import { startAnvil } from "../../../src/hosts/cli/dev/Anvil.js"
import { devKeys } from "../../../src/hosts/cli/dev/DevKeys.js"
import { NodeProvider } from "../../../src/hosts/cli/support/NodeProvider.js"
import * as Wiring from "../../../src/hosts/Wiring.js"
import { use } from "../../support/Use.js"
import * as Guides from "./Guides.js"
import * as Snippets from "./Snippets.js"

/** Commands and programs of pages other than guides. test/house/snippets.test.ts lists those that run here. */

const folder = mkdtempSync(join(tmpdir(), "castellan-snippets-"))
const anvil = use(() => startAnvil({}))
/** Of the chain that examples name. */
const base = use(() => startAnvil({ chainId: 8_453 }))

beforeAll(async () => {
  await Guides.prepare(folder)
})
afterAll(async () => {
  rmSync(folder, { recursive: true })
})

const pepper = "a pepper that only this test uses"
const configuration = (more: object) => ({
  profile: "production",
  listen: { host: "127.0.0.1", port: 8080 },
  database: { path: "castellan.sqlite" },
  keyPepper: { env: "PEPPER" },
  accounts: [],
  networks: [{ chainId: 137 }, { chainId: 8_453, rpc: { env: "BASE_RPC" } }],
  ...more
})
const write = (name: string, more: object): string => {
  const path = join(folder, name)
  writeFileSync(path, JSON.stringify(configuration(more)))
  return path
}

const succeeded = async (ran: ReturnType<typeof Guides.perform>): Promise<string> => {
  const { status, stdout, stderr } = await ran
  expect(status, Guides.lastLines({ status, stdout, stderr })).toBe(0)
  return stdout
}

const block = (page: string, heading: string, language = "sh"): string => {
  const found = Snippets.of(page).filter((one) => one.heading === heading && one.language === language)
  if (found.length !== 1) throw new Error(`${page} shows ${found.length} of ${language} under ${heading}`)
  return found[0]?.text ?? ""
}

describe("the commands of the pages about keys and accounts", () => {
  it("commands make a key in an HSM, an account with the key, a webhook and a watch", async () => {
    const provider = JSON.parse(block("docs/signers/pkcs11.md", "2. Configuration of the provider", "json"))
    const [hsm] = provider.providers
    const pin = join(folder, "hsm-pin")
    const here = { providers: [{ ...hsm, pin: { file: pin } }] }
    const listed = { ...here, accounts: [{ id: "acme", name: "Acme", tier: "pro", keys: [] }] }
    const own: Guides.Choices = [
      ["apt-get install softhsm2", `export PEPPER='${pepper}' BASE_RPC=${base.url}`],
      ["/var/lib/castellan/tokens", join(folder, "tokens")],
      ["/etc/castellan/softhsm2.conf", join(folder, "softhsm2.conf")],
      ["--label castellan", "--label castellan --so-pin 12345678 --pin 87654321"],
      [`install -m 600 /dev/stdin /run/secrets/hsm-pin`, `install -m 600 /dev/stdin ${pin} <<<87654321`],
      ["/etc/castellan/castellan.json", write("listed.json", listed)],
      [
        "npm run castellan -- accounts create",
        `export CASTELLAN_CONFIG=${write("tenants.json", here)}; castellan accounts create`
      ],
      ["--webhook WEBHOOK", "--webhook $(castellan webhooks list --json | jq -re '.[0].webhookId')"]
    ]
    const said = await succeeded(Guides.run(folder, [...Guides.onHsm, ...Guides.onDatabase], own))
    const shown = Snippets.of("docs/signers/pkcs11.md").find(({ text }) => text.startsWith("address:"))?.text
    const fields = (text: string) => text.match(/^(?:[a-z][a-z ]*: | {2}"\w+": |for ".*)/gm)
    expect(fields(said)?.slice(0, 8)).toEqual(fields(shown ?? "")?.slice(0, 8))
    expect(fields(said)?.length).toBeGreaterThan(7)
    expect(said).toMatch(/^watch [0-9a-f-]{36}$/m)
  }, 120_000)
})

describe("the commands of a deployment", () => {
  const keys = {
    deployer: devKeys.deployer.address,
    owner: devKeys.factoryOwner.address,
    beaconOwner: devKeys.beaconOwner.address
  }

  it("commands of install.md show a plan and check a configuration", async () => {
    const serve = "npx castellan serve --config castellan.jsonc"
    const environment = { RPC: anvil.url, CHAIN: "31337", PAYER: devKeys.faucet.privateKey, PEPPER: pepper }
    const given = {
      ...environment,
      DEPLOYER: keys.deployer,
      OWNER: keys.owner,
      BEACON_OWNER: keys.beaconOwner
    }
    const exports = Object.entries(given).map(([name, value]) => `export ${name}='${value}'\n`)
    const text = exports.join("") + block("docs/install.md", "On your chain")
    const said = await succeeded(Guides.perform(folder, text, [[serve, ": test/package/Served.ts does it"]]))
    expect(said).toContain("the configuration can be used")
    expect(said).toMatch(/factory/i)
  }, 60_000)

  it("commands of the page about contracts deploy them", async () => {
    const text = `export PAYER=${devKeys.faucet.privateKey}\n${block("docs/contracts.md", "Deployment")}`
    const said = await succeeded(
      Guides.perform(folder, text, [
        ["http://127.0.0.1:8545", anvil.url],
        ["--deployer 0x…", `--deployer ${keys.deployer}`],
        ["--owner 0x…", `--owner ${keys.owner}`],
        ["--beacon-owner 0x…", `--beacon-owner ${keys.beaconOwner}`],
        ["--sponsor 0x…", `--sponsor ${devKeys.sponsor.address} --yes`]
      ])
    )
    expect(said).toContain(suiteOf({ ...keys, sponsor: devKeys.sponsor.address }).factory)
  }, 60_000)

  it("functions of the package do the same and fund the paymaster", async () => {
    const { deploy } = await import("../../embed/deployed.js")
    const provider = new NodeProvider(anvil.url, 31_337, { staticNetwork: true, cacheTimeout: -1 })
    const payer = new Wallet(devKeys.faucet.privateKey, provider)
    const all = { ...keys, sponsor: Wallet.createRandom().address }
    const { paymaster } = suiteOf(all)
    await deploy(payer, all, paymaster, 5n)
    for (const entryPoint of Object.values(entryPoints)) {
      const deposits = new Contract(
        entryPoint,
        ["function balanceOf(address) view returns (uint256)"],
        provider
      )
      expect(await deposits.getFunction("balanceOf")(paymaster)).toBe(5n)
    }
    provider.destroy()
  })
})

describe("the programs of docs/operations.md and docs/watches.md", () => {
  it("programs mount the service and call it", async () => {
    const { hash, key } = Effect.runSync(Wiring.issueKey(Redacted.make(pepper)))
    const signer = { clientId: "treasury", versionId: "1", privateKey: { env: "TREASURY" } }
    const path = write("mounted.json", {
      networks: [{ chainId: 8_453, rpc: base.url }],
      profile: "development",
      database: { path: "mounted.sqlite" },
      accounts: [{ id: "acme", name: "Acme", tier: "pro", keys: [{ hash }] }],
      signers: [{ accounts: ["acme"], ...signer }]
    })
    const privateKey = `0x${"11".repeat(32)}`
    const given = {
      CASTELLAN_CONFIG: path,
      PEPPER: pepper,
      TREASURY: privateKey,
      API_KEY: Redacted.value(key)
    }
    for (const [name, value] of Object.entries(given)) vi.stubEnv(name, value)
    const { dispose, handler, ready } = await import("../../embed/mounted.js")
    const printed = vi.spyOn(console, "log").mockImplementation(() => {})
    try {
      await ready
      vi.stubGlobal("fetch", (url: string, init: RequestInit) => handler(new Request(url, init)))
      const { follow, signs, watch } = await import("../../embed/called.js")
      expect(signs).toBe(computeAddress(privateKey))
      await expect(follow("5f0c2a9e-7d56-4d0c-9a55-0a3f4b6e1c77")).rejects.toMatchObject({
        code: "request_not_found"
      })
      const event = "event Transfer(address indexed from, address indexed to, uint256 value)"
      const added = await fetch("https://castellan.example/wallets/webhooks", {
        method: "POST",
        headers: { "x-api-key": given.API_KEY, "content-type": "application/json" },
        body: JSON.stringify({ url: "https://example.com/castellan", kinds: ["expired"] })
      })
      const { webhookId }: { readonly webhookId: string } = JSON.parse(await added.text())
      expect(await watch(webhookId, event, signs)).toMatch(/^[0-9a-f-]{36}$/)
    } finally {
      printed.mockRestore()
      vi.unstubAllGlobals()
      vi.unstubAllEnvs()
      await dispose()
    }
  })
})
