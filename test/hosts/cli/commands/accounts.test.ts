import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { computeAddress } from "ethers"
import { OperatorLog } from "../../../../src/application/ports/operator/OperatorLog.js"
import { Operator } from "../../../../src/hosts/cli/support/Operator.js"
import * as OperatorContext from "../../../../src/hosts/cli/support/OperatorContext.js"
import { ask, make, until } from "../../../support/accounts/Castellan.js"
import * as Postgres from "../../../support/postgres/Postgres.js"
import * as CommandLine from "../../../support/process/CommandLine.js"
import { runSource } from "../../../support/process/Program.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-accounts-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const databases = Postgres.perFile()

const fileHash = "ab".repeat(32)
const factory = "0x35a7E9496DfDaC5D3dc40D76AAa677d6a76ac106"
const other = "0x7842e753F6A682A7907939a0855E0c72eD0c6cB9"
const privateKey = `0x${"4d".repeat(32)}`
const sponsor = computeAddress(`0x${"5e".repeat(32)}`)
const variables = {
  KEY: privateKey,
  SPONSOR: `0x${"5e".repeat(32)}`,
  // No server listens there.
  NODE: "http://127.0.0.1:9"
}

const file = {
  allowPrivateKeys: true,
  accounts: [
    {
      id: "listed",
      name: "Listed",
      tier: "pro",
      keys: [{ hash: fileHash }],
      networks: [{ chainId: 137, factory }]
    }
  ],
  providers: [
    {
      kind: "private-key",
      name: "vault",
      keys: [
        { name: "one", privateKey: { env: "KEY" } },
        { name: "two", privateKey: { env: "SPONSOR" } }
      ]
    }
  ],
  systemKeys: { sponsor: { provider: "vault", key: "two" } },
  networks: [{ chainId: 137, rpc: { env: "NODE" }, sponsor: { paymaster: other } }]
}

interface Issued {
  readonly key: string
  readonly id: string
}

interface Listed {
  readonly id: string
  readonly state: string
  readonly lastUsedAt: string | null
}

/** The log of operators, newest first. */
const actsIn = async (env: Readonly<Record<string, string>>) => {
  const acts = await Effect.runPromise(
    Effect.gen(function* () {
      const { ports } = yield* OperatorContext.open
      return yield* Context.get(ports, OperatorLog).find({ limit: 10 })
    }).pipe(Effect.scoped, Effect.provideService(Operator, operatorOf(env)))
  )
  return acts.map(({ act, operator, reason, subject }) => [operator, act, subject, reason])
}

const operatorOf = (env: Readonly<Record<string, string>>): Operator["Service"] => {
  const no = () => Effect.die(new Error("the command only reads"))
  return { env, devConfig: undefined, print: no, tell: no, ask: no, answer: no, serve: no, become: no }
}

const sqlite = Effect.succeed({ database: { path: "real.sqlite" }, url: "" })
const postgres = Effect.map(databases.fresh, (options) => ({
  database: { url: { env: "DATABASE" } },
  url: "url" in options ? Redacted.value(options.url) : ""
}))

const takenAndRefused = async (
  place: Effect.Effect<{ readonly database: unknown; readonly url: string }>
) => {
  const { database, url: databaseUrl } = await Effect.runPromise(place)
  const castellan = make(folder, { ...file, database }, { ...variables, DATABASE: databaseUrl })
  const { json } = CommandLine.lines(castellan.env)
  const { stop, url } = await castellan.serve()
  try {
    const made = await castellan.command("accounts", "create", "acme", "--name", "Acme Ltd", "--tier", "pro")
    expect(made).toEqual({
      code: 0,
      stdout: 'account acme is made; "castellan keys create acme" issues its first key\n',
      stderr: ""
    })
    const issued = await castellan.said<Issued>("keys", "create", "acme", "--scopes", "read,write")
    expect(issued).toMatchObject({ account: "acme", scopes: ["read", "write"] })
    expect(issued.key).toMatch(/^cst_[A-Za-z0-9_-]{43}$/)

    const found = await runSource("src/hosts/cli/castellan.ts", ["keys", "identify", "--json"], {
      env: castellan.env,
      input: `${issued.key}\n`
    })
    expect(await found.ended).toBe(0)
    expect(JSON.parse(found.stdout())).toMatchObject({ id: issued.id, state: "active" })

    // A valid key reaches the body check, which fails.
    await until("invalid_request", () => ask(url, issued.key))
    expect((await ask(url, issued.key)).headers.get("ratelimit-limit")).toBe("300")
    expect((await ask(url, issued.key, "/sign")).code).toBe("scope_missing")

    const limit = async () => (await ask(url, issued.key)).headers.get("ratelimit-limit")
    const own = await json("accounts set acme --requests-per-minute 6000 --requests-per-hour 200000")
    expect(own).toMatchObject({ tier: "pro", requestsPerMinute: 6_000, requestsPerHour: 200_000 })
    await until("6000", async () => ({ code: (await limit()) ?? "" }))
    expect(await json("accounts show acme")).toMatchObject(own as object)
    const tiers = await json("accounts set acme --requests-per-minute tier --requests-per-hour tier")
    expect(tiers).toMatchObject({ tier: "pro", requestsPerMinute: null, requestsPerHour: null })
    await until("300", async () => ({ code: (await limit()) ?? "" }))

    const rotated = await json<Issued>(`keys rotate ${issued.id} --overlap 1h`)
    expect(rotated).toMatchObject({ account: "acme", scopes: ["read", "write"], replaces: issued.id })
    await until("invalid_request", () => ask(url, rotated.key))
    expect((await ask(url, issued.key)).code).toBe("invalid_request")

    const revoked = await castellan.command("keys", "revoke", issued.id)
    expect(revoked).toMatchObject({ code: 0, stdout: `key ${issued.id} of account acme is revoked\n` })
    await until("unauthorized", () => ask(url, issued.key))
    expect((await ask(url, rotated.key)).code).toBe("invalid_request")

    await json("accounts pause acme --operator Ada --reason audit")
    await until("account_paused", () => ask(url, rotated.key))
    await json("accounts resume acme")
    await until("invalid_request", () => ask(url, rotated.key))

    await stop()
    const keys = await json<ReadonlyArray<Listed>>("keys list acme")
    expect(keys.map(({ id, lastUsedAt, state }) => [id, state, lastUsedAt !== null])).toEqual([
      [issued.id, "ended", true],
      [rotated.id, "active", true]
    ])
    const list = await castellan.command("accounts", "list")
    const rows = list.stdout.trim().split("\n")
    expect(rows.map((line) => line.split(/ {2,}/))).toEqual([
      ["ACCOUNT", "NAME", "TIER", "A MINUTE", "AN HOUR", "STATE", "FROM"],
      ["listed", "Listed", "pro", "300", "10000", "active", "file"],
      ["acme", "Acme Ltd", "pro", "300", "10000", "active", "database"]
    ])
    expect(await actsIn(castellan.env)).toEqual([
      ["command line", "resume", "account acme", "by command"],
      ["command line: Ada", "pause", "account acme", "audit"],
      ["command line", "revoke", `key ${issued.id} of acme`, "by command"]
    ])
    // Secrets are shown only once.
    const shown = JSON.stringify(await json("accounts show acme"))
    for (const { key } of [issued, rotated]) expect(shown).not.toContain(key)
  } finally {
    await stop()
  }
}

describe("accounts and keys from the command line soon take effect in a service on", () => {
  it("SQLite", () => takenAndRefused(sqlite), 240_000)
  it("PostgreSQL", () => takenAndRefused(postgres), 240_000)
})

describe("the commands", () => {
  const { env } = make(folder, { ...file, database: { path: "commands.sqlite" } }, variables)
  const { json, ok, refused } = CommandLine.lines(env)

  it("refusals name the remedy", async () => {
    await ok("accounts create bolt")
    const remedies: ReadonlyArray<readonly [string, string]> = [
      ["accounts create", "Missing required argument: ID"],
      ["accounts create a b", "Unexpected positional argument"],
      ["accounts create _x", "a letter or digit first"],
      ["accounts create x --tier gold", '"free" | "pro" | "enterprise"'],
      ["accounts create x --colour red", "Unrecognized flag: --colour"],
      ["accounts create bolt", 'run "castellan accounts show bolt"'],
      ["accounts create listed", "another account has the id listed"],
      ["accounts show missing", "there is no account called missing; there are: listed, bolt"],
      ["accounts pause missing", "there is no account called missing; there are: listed, bolt"],
      ["accounts resume missing", "there is no account called missing; there are: listed, bolt"],
      ["accounts set bolt", "expected --name or --tier"],
      ["accounts set bolt --requests-per-minute 0", "--requests-per-minute: expected an integer from 1"],
      ["accounts create x --requests-per-minute 1000001", 'from 1 to 1000000, or "tier", got "1000001"'],
      ["accounts create x --requests-per-hour 1e3", "--requests-per-hour: expected an integer from 1"],
      ["accounts set listed --requests-per-hour tier", "is of the configuration file: change it there"],
      ["accounts set listed --tier free", "is of the configuration file: change it there"],
      ["accounts set-network listed 137 confirmations=2", "is of the configuration file"],
      ["accounts set-network bolt 137", "FIELD=VALUE"],
      ["accounts set-network bolt 137 nonsense", "expected FIELD=VALUE, not nonsense"],
      ["accounts set-network bolt x factory=", "expected a chain id"],
      ["accounts set-network bolt 99 confirmations=2", "the configuration has no chain 99"],
      ["accounts set-network bolt 137 colour=red", "colour: is not a known field"],
      ["accounts set-network bolt 137 rpc=https://u:p@h/secret", "rpc: secrets stand in"],
      [
        'accounts set-network bolt 137 rpc={"env":"NOWHERE"}',
        "rpc: the environment variable NOWHERE is not set"
      ],
      [`accounts set-network bolt 137 factory=${factory}`, "factory: account listed has it"],
      ["accounts remove-network bolt 137", "has no own settings on chain 137"],
      ["accounts set-budget bolt 80002 1", "chain 80002 has no sponsor"],

      ["accounts set-budget bolt 137 1.5", "expected wei"],
      [
        "accounts add-signer bolt --client-id c --version-id 1 --provider none --key k",
        "no provider called none"
      ],
      [
        "accounts add-signer bolt --client-id c --provider vault --key one",
        "one of --version-id and --asset-id"
      ],
      [
        "accounts add-signer bolt --version-id 1 --provider vault --key one",
        "Missing required flag: --client-id"
      ],
      ["accounts add-signer bolt --client-id c --version-id 1 --provider vault --key none", "none"],
      ["accounts remove-signer bolt --client-id c --version-id 1", "has no signer"],
      ["keys create missing", "there is no account called missing"],
      ["keys create bolt --scopes read,all", "--scopes: expected some of read,write,sign"],
      ["keys rotate abababab", "Missing required flag: --overlap"],
      ["keys rotate abababab --overlap soon", "--overlap: expected a number and its unit"],
      ["keys revoke 1234567890ab", 'run "castellan keys list"'],
      [`keys revoke cst_${"A".repeat(43)}`, "and never by itself"],
      ["keys scopes abababab --scopes read", "is of the configuration file"],
      ["keys hash", "expected either --pepper-env or --pepper-file"],
      ["chains pause 1", "the configuration has no chain 1; there are: 137, 8453, 80002, 84532"],
      ["chains resume 1", "the configuration has no chain 1; there are: 137, 8453, 80002, 84532"],
      [
        `signers pause ${factory}`,
        `no key of the service has the address ${factory}; there are: ${sponsor} (the system key sponsor)`
      ],
      [`signers resume ${factory}`, `there are: ${sponsor} (the system key sponsor)`],
      ["signers pause 0x12", "0x12"]
    ]
    for (const [line, remedy] of remedies) expect(await refused(line), line).toContain(remedy)
  })

  it("print the same facts as JSON and as text", async () => {
    expect(JSON.parse(await refused("accounts show missing --json"))).toEqual({
      error: expect.stringContaining("there is no account called missing; there are: listed")
    })
    expect(await json("audit list --limit 5")).toEqual([])
    expect(await json("chains pause 137")).toEqual({ kind: "chain", subject: "137", paused: true })
    expect(await json("chains paused")).toEqual([{ subject: "137", since: expect.any(String) }])
    expect(await ok("chains paused")).toMatch(/^137 {2}20\d\d-/)
    await ok("chains resume 137")
    expect(await ok("chains paused")).toBe("nothing is paused")
    await ok(`signers pause ${sponsor.toLowerCase()}`)
    expect(await json("signers paused")).toEqual([{ subject: sponsor, since: expect.any(String) }])
    await ok(`signers resume ${sponsor} --operator Ada --reason repaired`)
    expect((await actsIn(env)).slice(0, 4)).toEqual([
      ["command line: Ada", "resume", `signer ${sponsor}`, "repaired"],
      ["command line", "pause", `signer ${sponsor}`, "by command"],
      ["command line", "resume", "chain 137", "by command"],
      ["command line", "pause", "chain 137", "by command"]
    ])
  })

  it("an account gets its own values on a chain, field by field", async () => {
    await ok("accounts create cord")
    await ok(
      "accounts set-network cord 137 factory=0x1000000000000000000000000000000000000001 confirmations=3"
    )
    await ok("accounts set-network cord 137 maxFeePerGas=123456789012345678901 confirmations=")
    await ok("accounts set-budget cord 137 5000000000000000000")
    const { networks } = await json<{ networks: unknown }>("accounts show cord")
    expect(networks).toEqual([
      {
        chainId: 137,
        factory: "0x1000000000000000000000000000000000000001",
        maxFeePerGas: "123456789012345678901",
        sponsor: { paymaster: other, dailyBudget: "5000000000000000000" }
      }
    ])
    await ok("accounts create dust")
    expect(
      await refused("accounts set-network dust 137 factory=0x1000000000000000000000000000000000000001")
    ).toContain("account cord has the factory")
    await ok("accounts remove-network cord 137")
    await ok("accounts set-network dust 137 factory=0x1000000000000000000000000000000000000001")
  })

  it("an EOA belongs to one account", async () => {
    await ok("accounts create east")
    await ok("accounts create west")
    const signer = "--client-id c --version-id 1 --provider vault --key one"
    const added = await json<{ address: string }>(`accounts add-signer east ${signer}`)
    expect(added.address).toMatch(/^0x[0-9a-fA-F]{40}$/)
    expect(await refused(`accounts add-signer west ${signer}`)).toContain(
      `accounts "east", "west" reach one EOA (${added.address})`
    )
    await ok("accounts remove-signer east --client-id c --version-id 1")
    expect(await json(`accounts add-signer west ${signer}`)).toMatchObject({ address: added.address })
    expect((await json<{ signers: unknown }>("accounts show west")).signers).toHaveLength(1)
    expect(await json("signers list")).toMatchObject([
      { signer: 'signer "c" versionId "1"', accounts: ["west"], address: added.address, origin: "database" },
      { signer: "the system key sponsor", accounts: [], address: sponsor, origin: "file" }
    ])
    expect(await json(`signers pause ${added.address}`)).toMatchObject({ paused: true })
    await ok("accounts remove-signer west --client-id c --version-id 1")
    // A paused signer can be resumed after its removal, once.
    await ok(`signers resume ${added.address}`)
    expect(await refused(`signers resume ${added.address}`)).toContain("no key of the service")
  })

  it("keys of the file stay rotated and revoked", async () => {
    const rotated = await json<Issued>("keys rotate abababab --overlap 30m")
    expect(rotated).toMatchObject({ account: "listed", replaces: "abababababab" })
    expect(await json("keys show abababab")).toMatchObject({ state: "ending", origin: "file" })
    await ok("keys revoke abababab")
    expect(await json("keys show abababab")).toMatchObject({ state: "ended" })
    expect(await refused("keys rotate abababab --overlap 1d")).toContain("has ended")
    expect(await json(`keys scopes ${rotated.id} --scopes sign`)).toMatchObject({ scopes: ["sign"] })
  })

  it("an unreadable configuration is reported", async () => {
    expect(await Effect.runPromise(Effect.flip(CommandLine.run(["keys", "list"], {})))).toContain(
      "CASTELLAN_CONFIG is not set"
    )
  })
})
