import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as Bundle from "../support/process/Bundle.js"
import { type Program, run, runSource } from "../support/process/Program.js"

/** The service as a process, of one bundle; that of the package is started by `npm run test:package`. */
const folder = mkdtempSync(join(tmpdir(), "castellan-process-"))
let main: string
let configs = 0
const running: Array<Program> = []

const started = (program: Program): Program => {
  running.push(program)
  return program
}

const hash = "21ca2b88d8bd2b95fe8ad6c38ea53aebfd1a2c4ba9b7d2c4fa5b4fd62adfb7cd"

/** A configuration with a separate database. */
const configFile = (change: object = {}): string => {
  configs += 1
  const path = join(folder, `castellan-${configs}.json`)
  const whole = {
    profile: "production",
    listen: { host: "127.0.0.1", port: 0 },
    database: { path: `castellan-${configs}.sqlite` },
    keyPepper: { file: "pepper" },
    accounts: [{ id: "acme", name: "Acme", tier: "pro", keys: [{ hash }] }],
    networks: [],
    ...change
  }
  writeFileSync(path, JSON.stringify(whole))
  return path
}

/** The service, at the address that it logs. */
const service = async (env: Readonly<Record<string, string>> = {}) => {
  const program = started(run([main], { cwd: folder, env: { CASTELLAN_CONFIG: configFile(), ...env } }))
  await program.says('"message":"listening"')
  const url = /"url":"([^"]+)"/.exec(program.stdout())?.[1] ?? "no url"
  return { program, url }
}

beforeAll(async () => {
  main = await Bundle.of("src/hosts/node/main.ts")
  writeFileSync(join(folder, "pepper"), "a pepper of many bytes\n", { mode: 0o600 })
})

afterAll(async () => {
  for (const { child } of running) child.kill("SIGKILL")
  await Promise.all(running.map(({ ended }) => ended))
  rmSync(folder, { recursive: true })
})

describe("the service process", () => {
  it("is ready once it listens, and logs only JSON lines, one of them then", async () => {
    const { program, url } = await service()
    const entries = program
      .stdout()
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect(entries).toMatchObject([{ message: "listening", profile: "production" }])
    expect((await fetch(`${url}/health/ready`)).status).toBe(200)
    expect(program.stderr()).toBe("")
  })

  for (const signal of ["SIGTERM", "SIGINT"] as const)
    it(`ends with code 0 on ${signal}, however often the signal arrives`, async () => {
      const { program } = await service()
      program.child.kill(signal)
      program.child.kill(signal)
      expect(await program.ended).toBe(0)
      expect(program.stderr()).toBe("")
    })

  it("reports its invalid configuration, and ends with code 1", async () => {
    const none = started(run([main], { cwd: folder }))
    expect(await none.ended).toBe(1)
    expect(none.stderr()).toBe(
      'CASTELLAN_CONFIG is not set: it, or --config, names the configuration file; "castellan init" writes one\n'
    )
    const bad = configFile({ listen: { host: "127.0.0.1", port: "80" }, keyPepper: undefined })
    const wrong = started(run([main], { cwd: folder, env: { CASTELLAN_CONFIG: bad } }))
    expect(await wrong.ended).toBe(1)
    expect(wrong.stderr()).toContain("listen.port: expected an integer from 0 to 65535")
    expect(wrong.stderr()).toContain("keyPepper: is missing")
    expect(wrong.stderr()).not.toContain("    at ")
  })

  it("starts from the command line too, with the named configuration", async () => {
    const cli = await Bundle.of("src/hosts/cli/castellan.ts")
    const program = started(run([cli, "serve", "--config", configFile()], { cwd: folder }))
    await program.says('"message":"listening"')
    const url = /"url":"([^"]+)"/.exec(program.stdout())?.[1] ?? "no url"
    expect((await fetch(`${url}/health/ready`)).status).toBe(200)
    program.child.kill("SIGTERM")
    expect(await program.ended).toBe(0)
    const none = started(run([cli, "serve"], { cwd: folder }))
    expect(await none.ended).toBe(1)
    expect(none.stderr()).toContain("CASTELLAN_CONFIG is not set")
    const missing = started(run([cli, "serve", "--config", "nowhere.json"], { cwd: folder }))
    expect(await missing.ended).toBe(1)
    expect(missing.stderr()).toContain("nowhere.json")
  })

  it("reports a port in use, and ends with code 1", async () => {
    const { url } = await service()
    const taken = configFile({ listen: { host: "127.0.0.1", port: Number(new URL(url).port) } })
    const second = started(run([main], { cwd: folder, env: { CASTELLAN_CONFIG: taken } }))
    expect(await second.ended).toBe(1)
    expect(second.stderr()).toContain("EADDRINUSE")
    expect(second.stderr()).not.toContain("    at ")
  })
})

describe("the command that makes a key for the configuration", () => {
  const key = async (...args: ReadonlyArray<string>) =>
    started(
      await runSource("src/hosts/cli/castellan.ts", ["keys", "hash", ...args], {
        env: { PEPPER: "a pepper of many bytes" }
      })
    )

  it("issues a key that works once its hash is in the configuration", async () => {
    const command = await key("--pepper-env", "PEPPER")
    expect(await command.ended).toBe(0)
    const issued = /API key \(shown once\): (cst_[A-Za-z0-9_-]{43})/.exec(command.stdout())?.[1] ?? "none"
    const keyHash = /"hash": "([0-9a-f]{64})"/.exec(command.stdout())?.[1] ?? "none"
    const accounts = [{ id: "acme", name: "Acme", tier: "pro", keys: [{ hash: keyHash }] }]
    const keyed = configFile({ accounts })
    const { url } = await service({ CASTELLAN_CONFIG: keyed })
    const ask = async (apiKey: string) => {
      const answer = await fetch(`${url}/predict`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": apiKey },
        body: "{}"
      })
      return { status: answer.status, body: await answer.text() }
    }
    expect((await ask(issued)).status).toBe(400)
    expect((await ask(`${issued.slice(0, -1)}${issued.endsWith("A") ? "B" : "A"}`)).status).toBe(401)
  })

  it("never issues the same key twice", async () => {
    const [one, other] = await Promise.all([key("--pepper-env", "PEPPER"), key("--pepper-env", "PEPPER")])
    await Promise.all([one.ended, other.ended])
    expect(one.stdout()).not.toBe(other.stdout())
  })

  it("explains itself when the pepper is not named or not there", async () => {
    const unnamed = await key()
    expect(await unnamed.ended).toBe(1)
    expect(unnamed.stderr()).toContain("either --pepper-env or --pepper-file")
    const absent = await key("--pepper-env", "NOWHERE")
    expect(await absent.ended).toBe(1)
    expect(absent.stderr()).toBe("no pepper: the environment variable NOWHERE is not set\n")
  })
})
