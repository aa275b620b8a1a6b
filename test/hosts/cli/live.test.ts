import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { computeAddress, Wallet } from "ethers"
import { type Castellan, make, until } from "../../support/accounts/Castellan.js"
import * as CommandLine from "../../support/process/CommandLine.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-live-"))
const [one, two] = ["4d", "5e"].map((byte) => `0x${byte.repeat(32)}`)
if (one === undefined || two === undefined) throw new Error("there are two keys")

const shared = "0x35a7E9496DfDaC5D3dc40D76AAa677d6a76ac106"
const own = "0x1000000000000000000000000000000000000001"

const castellan: Castellan = make(
  folder,
  {
    allowPrivateKeys: true,
    accounts: [{ id: "listed", name: "Listed", tier: "pro", keys: [] }],
    providers: [
      {
        kind: "private-key",
        name: "vault",
        keys: [
          { name: "one", privateKey: { env: "ONE" } },
          { name: "two", privateKey: { env: "TWO" } }
        ]
      }
    ],
    signers: [{ accounts: ["listed"], clientId: "c", versionId: "1", provider: "vault", key: "two" }],
    networks: [{ chainId: 137, factory: shared }]
  },
  { ONE: one, TWO: two }
)

const json = async <A>(line: string): Promise<A> =>
  JSON.parse(await Effect.runPromise(CommandLine.run([...line.split(" "), "--json"], castellan.env)))

let service: Awaited<ReturnType<Castellan["serve"]>>
const keys = { listed: "", acme: "" }
beforeAll(async () => {
  service = await castellan.serve()
  await json("accounts create acme --tier enterprise")
  for (const id of ["listed", "acme"] as const)
    keys[id] = (await json<{ key: string }>(`keys create ${id}`)).key
  for (const key of Object.values(keys)) await until("200", () => signerOf(key, "none"))
})
afterAll(async () => {
  await service.stop()
  rmSync(folder, { recursive: true, force: true })
})

const call = async (key: string, path: string, body?: unknown) => {
  const answer = await fetch(service.url + path, {
    method: body === undefined ? "GET" : "POST",
    headers: { "content-type": "application/json", "x-api-key": key },
    ...(body !== undefined && { body: JSON.stringify(body) })
  })
  return { status: answer.status, text: await answer.text() }
}

/** The address or the refusal's code; 200 for any success. */
const signerOf = async (key: string, versionId: string) => {
  const { status, text } = await call(key, "/getSigner", { signer: { clientId: "c", versionId } })
  const { address, code }: { address?: string; code?: string } = JSON.parse(text)
  return {
    code: versionId === "none" && code !== "unauthorized" ? "200" : (address ?? code ?? String(status))
  }
}

const networks = async (key: string) => ({ code: (await call(key, "/networks")).text })

/** Waits until the account's networks contain the text, or no longer do. */
const told = (key: string, text: string, yes: boolean) =>
  until("as expected", async () => ({
    code: (await networks(key)).code.includes(text) === yes ? "as expected" : "otherwise"
  }))

describe("without a restart", () => {
  it("an account of the database has only its own factory, in effect without a restart", async () => {
    expect((await networks(keys.listed)).code).toContain(shared)
    expect((await networks(keys.acme)).code).not.toContain(shared)
    await json(`accounts set-network acme 137 factory=${own}`)
    await told(keys.acme, own, true)
    expect((await networks(keys.listed)).code).not.toContain(own)
    await json("accounts remove-network acme 137")
    await told(keys.acme, own, false)
  })

  it("an account can use a signer from its addition to its removal", async () => {
    expect(await signerOf(keys.acme, "1")).toEqual({ code: "client_id_incorrect" })
    await json("accounts add-signer acme --client-id c --version-id 1 --provider vault --key one")
    await until(new Wallet(one).address, () => signerOf(keys.acme, "1"))
    expect(await signerOf(keys.listed, "1")).toEqual({ code: computeAddress(two) })
    await json("accounts remove-signer acme --client-id c --version-id 1")
    await until("client_id_incorrect", () => signerOf(keys.acme, "1"))
    expect(await signerOf(keys.listed, "1")).toEqual({ code: computeAddress(two) })
  })

  it("a signer of another account of the file cannot be added", async () => {
    await expect(
      json("accounts add-signer acme --client-id c --version-id 2 --provider vault --key two")
    ).rejects.toThrow(/reach one EOA/)
    expect(await signerOf(keys.acme, "2")).toEqual({ code: "client_id_incorrect" })
  })
})
