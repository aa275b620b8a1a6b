import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { computeAddress } from "ethers"
import { startAnvil } from "../../../../src/hosts/cli/dev/Anvil.js"
import * as InitialConfig from "../../../../src/hosts/cli/support/InitialConfig.js"
import * as Config from "../../../../src/hosts/config/Config.js"
import * as CommandLine from "../../../support/process/CommandLine.js"
import { use } from "../../../support/Use.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-init-"))
const anvil = use(() => startAnvil({ args: [] }))
afterAll(async () => {
  rmSync(folder, { recursive: true })
})

const place = (name: string): string => join(folder, name, "castellan.jsonc")
const init = (name: string, args: ReadonlyArray<string>, replies: Readonly<Record<string, string>> = {}) =>
  Effect.suspend(() => CommandLine.heard(["init", "--out", place(name), ...args], {}, false, replies))

const loaded = (name: string, env: Readonly<Record<string, string>> = {}) =>
  Result.getOrThrow(Config.load({ CASTELLAN_CONFIG: place(name), ...env }))

describe("castellan init", () => {
  it.effect("a usable configuration and its secrets come from flags", () =>
    Effect.gen(function* () {
      const { stdout } = yield* init("flags", ["--rpc", anvil.url, "--chain", "137", "--account", "acme"])
      const config = loaded("flags", { CASTELLAN_RPC_137: "http://127.0.0.1:1" })
      const nodes = config.networks.filter(({ rpc }) => rpc !== null).map(({ chainId }) => chainId)
      expect(nodes.toSorted()).toEqual([137n, 31337n])
      expect(config.accounts.map(({ accountId }) => accountId)).toEqual(["acme"])
      const secrets = join(dirname(place("flags")), "secrets")
      expect(readdirSync(secrets).toSorted()).toEqual(
        ["admin-token", "deployer", "key-pepper", "rpc-31337", "service-eoa", "signer", "sponsor"].toSorted()
      )
      expect(statSync(secrets).mode & 0o777).toBe(0o700)
      for (const name of readdirSync(secrets)) expect(statSync(join(secrets, name)).mode & 0o777).toBe(0o600)
      expect(statSync(place("flags")).mode & 0o777).toBe(0o600)

      const keyOf = (role: string) => readFileSync(join(secrets, role), "utf8").trim()
      for (const role of Object.keys(InitialConfig.roles)) {
        expect(stdout).toContain(computeAddress(keyOf(role)))
        expect(stdout).not.toContain(keyOf(role))
      }
      expect(stdout).toContain(`--deployer ${computeAddress(keyOf("deployer"))}`)
      expect(stdout).not.toContain(anvil.url)
      expect(readFileSync(place("flags"), "utf8")).not.toContain(anvil.url)
      const check = yield* CommandLine.run(["config", "check", "--config", place("flags")], {
        CASTELLAN_RPC_137: "http://127.0.0.1:1"
      })
      expect(check).toContain("the configuration can be used")
    })
  )

  it.effect("prompts for each value that no flag sets", () =>
    Effect.gen(function* () {
      yield* init("asked", [], {
        "URLs of nodes, one for each chain, separated by spaces": anvil.url,
        "SQLite file, or postgres": "postgres",
        "id of the first account": "beta"
      })
      const config = loaded("asked", { DATABASE_URL: "postgres://localhost/x" })
      expect(config.database).toHaveProperty("url")
      expect(config.accounts.map(({ accountId }) => accountId)).toEqual(["beta"])
    })
  )

  it.effect.each(Object.keys(InitialConfig.providers))("an example of %s has the provider's form", (keys) =>
    Effect.gen(function* () {
      yield* init(keys, ["--chain", "137", "--keys", keys])
      const secrets = join(dirname(place(keys)), "secrets")
      expect(readdirSync(secrets).toSorted()).toEqual(["admin-token", "key-pepper"])
      for (const name of ["azure-client", "gcp.json", "hsm-pin", "fireblocks-api-key", "fireblocks.key"])
        writeFileSync(join(secrets, name), "{}")
      const config = Config.load({ CASTELLAN_CONFIG: place(keys), CASTELLAN_RPC_137: "http://127.0.0.1:1" })
      expect(Result.isSuccess(config) ? [] : config.failure.problems).toEqual([])
    })
  )

  it.effect("a second run replaces no configuration and no key", () =>
    Effect.gen(function* () {
      const secret = join(dirname(place("flags")), "secrets/deployer")
      const before = readFileSync(secret, "utf8")
      expect(yield* Effect.flip(init("flags", ["--chain", "1"]))).toContain("exists: name another file")
      rmSync(place("flags"))
      yield* init("flags", ["--chain", "1"])
      expect(readFileSync(secret, "utf8")).toBe(before)
    })
  )

  it.effect("wrong flags are named", () =>
    Effect.gen(function* () {
      for (const [args, message] of [
        [[], "no chain: --rpc URL"],
        [["--chain", "x"], "--chain: expected a chain id"],
        [["--rpc", "ftp://x"], "--rpc: "],
        [["--rpc", "http://127.0.0.1:1"], "--rpc: "],
        [["--chain", "1", "--keys", "vault"], "--keys: expected file, aws-kms"],
        [["--chain", "1", "--account", "a b"], "--account: expected"]
      ] as const)
        expect(yield* Effect.flip(init("wrong", args))).toContain(message)
      expect(readdirSync(folder)).not.toContain("wrong")
    })
  )
})
