import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inspect } from "node:util"
import { afterAll, describe, expect, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Config from "../../../src/hosts/config/Config.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-config-"))
afterAll(() => rmSync(folder, { recursive: true }))

const key = `0x${"ab".repeat(32)}`
const otherKey = `0x${"cd".repeat(32)}`
const factory = "0x00000000000000000000000000000000000000f1"
const otherFactory = "0x00000000000000000000000000000000000000F2"
const beacon = "0x00000000000000000000000000000000000000be"
const hash = "0".repeat(64)

const env = {
  PEPPER: "a pepper of many bytes",
  KEY: key,
  EOA: otherKey,
  RPC: "https://node.example/v1/secret"
}

const production = {
  profile: "production",
  listen: { host: "0.0.0.0", port: 8080 },
  database: { path: "castellan.sqlite" },
  keyPepper: { env: "PEPPER" },
  accounts: [
    {
      id: "acme",
      name: "Acme",
      tier: "pro",
      keys: [{ hash }],
      networks: [{ chainId: 137, factory }]
    },
    {
      id: "bolt",
      name: "Bolt",
      tier: "free",
      keys: [],
      networks: [{ chainId: 137, factory: otherFactory }]
    }
  ],
  allowPrivateKeys: true,
  signers: [{ accounts: ["acme"], clientId: "acme-hsm", versionId: "1", privateKey: { env: "KEY" } }],
  systemKeys: { serviceEoa: { env: "EOA" } },
  networks: [
    { chainId: 137, rpc: { env: "RPC" }, beaconAdminAddress: beacon, maxFeePerGas: "500000000000" },
    { chainId: 31337, confirmations: 3 }
  ]
}

const development = {
  profile: "development",
  listen: { host: "127.0.0.1", port: 0 },
  database: { path: "/tmp/dev.sqlite" },
  keyPepper: "a pepper of many bytes",
  accounts: [],
  networks: []
}

const read = (file: unknown, variables: Readonly<Record<string, string>> = env) =>
  Config.fromText(JSON.stringify(file), "test.json", variables, folder)

const valid = (file: unknown, variables?: Readonly<Record<string, string>>): Config.Config =>
  Result.getOrThrowWith(read(file, variables), (error) => error)

const problems = (file: unknown, variables?: Readonly<Record<string, string>>): ReadonlyArray<string> =>
  Result.match(read(file, variables), {
    onFailure: (error) => error.problems.map(({ message, path }) => `${path}: ${message}`),
    onSuccess: () => []
  })

describe("a file that its schema refuses", () => {
  it("reports unreadable secrets too, each place once", () => {
    const [first] = production.networks
    const file = {
      ...production,
      keyPepper: { env: "NO_PEPPER" },
      signers: [{ ...production.signers[0], privateKey: { file: "no-such-key" } }],
      networks: [{ ...first, maxFeePerGas: "much", rpc: { env: "NO_RPC" } }],
      rateLimits: { redis: { env: "NO_REDIS" } }
    }
    const read = Config.fromText(JSON.stringify(file), "of a test", env, folder)
    const problems = Result.isFailure(read) ? read.failure.problems : []
    expect(problems.map(({ path }) => path).sort()).toEqual([
      "keyPepper",
      "networks[0].maxFeePerGas",
      "networks[0].rpc",
      "rateLimits",
      "signers[0].privateKey"
    ])
    expect(problems).toContainEqual({
      path: "keyPepper",
      message: "the environment variable NO_PEPPER is not set"
    })
  })
})

describe("a configuration", () => {
  it("gives every field its value or its default", () => {
    const config = valid(production)
    expect(config.database).toEqual({ path: join(folder, "castellan.sqlite") })
    expect(Redacted.value(config.keyPepper)).toBe(env.PEPPER)
    expect(config.accounts[0]).toEqual({
      accountId: "acme",
      name: "Acme",
      tier: "pro",
      paused: false,
      keys: [{ hash, scopes: ["read", "write", "sign", "webhooks"] }]
    })
    const [acme, bolt] = production.accounts
    const own = valid({
      ...production,
      accounts: [{ ...acme, requestsPerMinute: 6_000, requestsPerHour: 60_000_000 }, bolt]
    })
    expect(own.accounts[0]).toMatchObject({
      tier: "pro",
      requestsPerMinute: 6_000,
      requestsPerHour: 60_000_000
    })
    expect(own.accounts[1]).not.toHaveProperty("requestsPerMinute")
    expect(config.limits).toEqual({
      bodyBytes: 1_048_576,
      arrayElements: 256,
      batchElements: 10_000,
      concurrentRequests: 512,
      openRequests: 10_000,
      openElements: 50_000,
      openRequestsPerAccount: 2_000,
      openElementsPerAccount: 20_000,
      scheduledRequests: 100_000,
      scheduledElements: 500_000,
      scheduledRequestsPerAccount: 10_000,
      scheduledElementsPerAccount: 50_000,
      anonymousPerMinute: 300,
      connections: 4_096,
      connectionsPerAddress: 1_024,
      drainMillis: 25_000
    })
    expect(config.edge).toEqual({
      trustedProxies: [],
      corsOrigins: [],
      egress: { allow: [], accounts: new Map() }
    })
    expect(config.keys.systemKeys).toEqual({
      serviceEoa: { provider: "configuration", key: "systemKeys.serviceEoa" }
    })
    expect(config.keys.signers).toEqual([
      {
        accountIds: ["acme"],
        clientId: "acme-hsm",
        versionId: "1",
        shared: false,
        source: { provider: "configuration", key: "signers[0].privateKey" }
      }
    ])
    const [inPlace] = config.keys.providers
    const keys = inPlace?.kind === "private-key" ? inPlace.keys : {}
    expect(
      Object.entries(keys).map(([name, value]) => [name, Redacted.isRedacted(value) && Redacted.value(value)])
    ).toEqual([
      ["signers[0].privateKey", key],
      ["systemKeys.serviceEoa", otherKey]
    ])
  })

  it("supports the interface's four chains and additional ones", () => {
    const chains = valid(production).networks.map(({ chainId }) => chainId)
    expect(new Set(chains)).toEqual(new Set([137n, 80_002n, 8_453n, 84_532n, 31_337n]))
    expect(valid(development).networks.map(({ chainId }) => chainId)).not.toContain(31_337n)
  })

  it("requires Polygon's minimum tips and OP-stack layer 1 fees by default", () => {
    const of = (networks: ReadonlyArray<unknown>, chainId: bigint) => {
      const found = valid({ ...development, networks }).networks.find((each) => each.chainId === chainId)
      return [found?.minPriorityFeePerGas, found?.l1Fee]
    }
    expect(of([], 137n)).toEqual([30_000_000_000n, null])
    expect(of([], 80_002n)).toEqual([25_000_000_000n, null])
    expect(of([], 8_453n)).toEqual([0n, "op-stack"])
    expect(of([], 84_532n)).toEqual([0n, "op-stack"])
    expect(of([{ chainId: 31_337 }], 31_337n)).toEqual([0n, null])
    expect(of([{ chainId: 137, minPriorityFeePerGas: "7" }], 137n)).toEqual([7n, null])
    expect(of([{ chainId: 8_453, l1Fee: null }], 8_453n)).toEqual([0n, null])
    expect(of([{ chainId: 10, l1Fee: "op-stack" }], 10n)).toEqual([0n, "op-stack"])
    expect(problems({ ...development, networks: [{ chainId: 10, l1Fee: "optimism" }] })).toEqual([
      'networks[0].l1Fee: expected "op-stack" or null'
    ])
  })

  it("accepts the URL of a PostgreSQL database as a secret or a file, not both", () => {
    const url = "postgres://castellan:pw-of-db@db.example/castellan"
    const config = valid({ ...production, database: { url: { env: "DATABASE" } } }, { ...env, DATABASE: url })
    expect("url" in config.database && Redacted.value(config.database.url)).toBe(url)
    expect(JSON.stringify(config.database)).not.toContain("pw-of-db")
    for (const database of [{}, { url: 7 }, { path: "a", url: { env: "DATABASE" } }, "a"])
      expect(problems({ ...production, database })).toEqual([
        'database: expected {"path": "file"} of SQLite or {"url": Secret} of PostgreSQL'
      ])
    expect(problems({ ...production, database: { url } })).toEqual([
      expect.stringMatching(/^database\.url: /)
    ])
    expect(problems({ ...production, database: { url } }).join()).not.toContain("pw-of-db")
  })

  it("accepts valid proxies, web origins and networks of callers' nodes, and names invalid ones", () => {
    const { edge } = valid({
      ...production,
      trustedProxies: ["10.0.0.0/8", "::1"],
      cors: { origins: ["https://app.example", "http://localhost:5173"] },
      egress: { allow: ["10.20.0.0/16"], accounts: { acme: ["10.30.0.0/16", "fd00::/8"] } }
    })
    expect(edge.trustedProxies.map(({ bits }) => bits)).toEqual([32, 128])
    expect(edge.corsOrigins).toEqual(["https://app.example", "http://localhost:5173"])
    expect(edge.egress.allow).toHaveLength(1)
    expect(edge.egress.accounts.get("acme")).toHaveLength(2)
    for (const range of ["10.0.0.1/8", "localhost", "*", "10.0.0.0/33"]) {
      expect(problems({ ...production, trustedProxies: [range] })).toEqual([
        "trustedProxies[0]: expected an IP address or a range of them, 10.0.0.0/8 for example"
      ])
      expect(problems({ ...production, egress: { allow: [range] } })).toHaveLength(1)
      expect(problems({ ...production, egress: { accounts: { acme: [range] } } })).toHaveLength(1)
    }
    for (const origin of [
      "*",
      "null",
      "app.example",
      "https://app.example/",
      "https://app.example:443",
      "https://APP.example",
      "https://*.example",
      "ftp://app.example",
      ""
    ])
      expect([origin, problems({ ...production, cors: { origins: [origin] } })]).toEqual([
        origin,
        origin === "https://*.example" ? [] : [expect.stringContaining("cors")]
      ])
  })

  it("refuses top-ups without a key or a node, and targets that repeat or are never full", () => {
    const [one, other] = [`0x${"11".repeat(20)}`, `0x${"22".repeat(20)}`]
    const level = { below: "1", upTo: "2", dailyCap: "9" }
    const deposit = { deposit: one, entryPoint: "0x0000000071727De22E5E9d8BAf0edAc6f37da032" }
    const of = (targets: ReadonlyArray<object>, rpc: string | undefined = "http://127.0.0.1:8545") => ({
      ...development,
      systemKeys: { treasury: `0x${"77".repeat(32)}` },
      networks: [{ chainId: 10, rpc, topUp: { keep: 5, dailyCap: "10", targets } }]
    })
    const all = ["serviceEoa", one, deposit].map((to) => ({ to, ...level }))
    const [profile] = valid(of(all)).networks.filter(({ chainId }) => chainId === 10n)
    expect(profile?.topUp).toMatchObject({
      keep: 5n,
      dailyCap: 10n,
      targets: [{ to: "serviceEoa", below: 1n, upTo: 2n, dailyCap: 9n }, {}, { to: deposit }]
    })
    const at = "networks[0].topUp"
    expect(problems({ ...of(all), systemKeys: {} })).toEqual([
      `${at}: systemKeys.treasury is missing: no key pays for it`
    ])
    expect(problems({ ...of(all), networks: [{ chainId: 10, topUp: of(all).networks[0]?.topUp }] })).toEqual([
      `${at}: the chain has no rpc of the operator's own`
    ])
    expect(problems(of([...all, { to: other, ...level, upTo: "1" }, { to: deposit, ...level }]))).toEqual([
      `${at}.targets[3].upTo: expected more than below`,
      `${at}.targets[4].to: it is listed twice`
    ])
    expect(problems(of([{ to: "treasury", ...level }]))).toEqual([
      expect.stringContaining(`${at}.targets[0].to: expected "serviceEoa"`)
    ])
    expect(problems(of([]))).toHaveLength(1)
  })

  it("requires a sponsor's key and the operator's own node", () => {
    const paymaster = `0x${"5a".repeat(20)}`
    const sponsor = { paymaster, dailyBudget: "1000000000000000000" }
    const chain = { chainId: 10, rpc: "http://127.0.0.1:8545", sponsor }
    const systemKeys = { sponsor: `0x${"77".repeat(32)}` }
    const named = { ...development, systemKeys, networks: [chain] }
    expect(valid(named).networks.find(({ chainId }) => chainId === 10n)?.sponsor?.dailyBudget).toBe(
      10n ** 18n
    )
    expect(problems({ ...named, systemKeys: {} })).toEqual([
      "networks[0].sponsor: systemKeys.sponsor is missing: no key signs for it"
    ])
    expect(problems({ ...named, networks: [{ chainId: 10, sponsor }] })).toEqual([
      "networks[0].sponsor: the chain has no rpc of the operator's own"
    ])
    const own = {
      id: "own",
      name: "Own",
      tier: "free",
      keys: [],
      networks: [{ chainId: 10, sponsor: { paymaster, dailyBudget: "5" } }]
    }
    expect(valid({ ...named, accounts: [own] }).accountNetworks).toMatchObject([
      { chainId: 10n, profile: { sponsor: { dailyBudget: 5n } } }
    ])
    for (const dailyBudget of ["-5", "0.1", "0x"])
      expect(
        problems({ ...named, networks: [{ ...chain, sponsor: { paymaster, dailyBudget } }] })
      ).toHaveLength(1)
  })

  it("accepts each paymaster service once, by an http(s) URL", () => {
    const [first, second] = [`0x${"11".repeat(20)}`, `0x${"22".repeat(20)}`]
    const url = "https://paymaster.example/v2/very-secret"
    const of = (paymasters: ReadonlyArray<object>, rest: object = {}) => ({
      ...development,
      networks: [{ chainId: 10, paymasters, ...rest }]
    })
    const found = valid(
      of([
        { address: first, url },
        { address: second, url }
      ])
    )
    const services = found.networks.find(({ chainId }) => chainId === 10n)?.paymasterServices
    expect(services?.map(({ paymaster }) => paymaster)).toEqual([first, second])
    expect(JSON.stringify(found.networks.map((each) => each.paymasterServices))).not.toContain("very-secret")
    expect(
      problems(
        of([
          { address: first, url },
          { address: first, url }
        ])
      )
    ).toEqual([`networks[0].paymasters[1].address: ${first} is listed twice`])
    const context = { policy: "p", key: { env: "PAYMASTER_KEY" }, deep: [{ key: { env: "PAYMASTER_KEY" } }] }
    const [withContext] =
      valid(of([{ address: first, url, context, callerContext: ["order"] }]), {
        PAYMASTER_KEY: "sesame"
      }).networks.find(({ chainId }) => chainId === 10n)?.paymasterServices ?? []
    expect(withContext?.callerContext).toEqual(["order"])
    expect(withContext?.context && Redacted.value(withContext.context)).toEqual({
      policy: "p",
      key: "sesame",
      deep: [{ key: "sesame" }]
    })
    expect(JSON.stringify(withContext)).not.toContain("sesame")
    expect(problems(of([{ address: first, url, context }]))).toEqual([
      "networks[0].paymasters[0].context.key: the environment variable PAYMASTER_KEY is not set",
      "networks[0].paymasters[0].context.deep[0].key: the environment variable PAYMASTER_KEY is not set"
    ])
    expect(problems(of([{ address: first, url: "ftp://paymaster.example" }]))).toEqual([
      "networks[0].paymasters[0].url: expected an http or https URL without user information"
    ])
  })

  it("keeps a network's values and fills in defaults", () => {
    const polygon = valid(production).networks.find(({ chainId }) => chainId === 137n)
    expect(polygon?.caps.maxFeePerGas).toBe(500_000_000_000n)
    expect(polygon?.caps.maxPriorityFeePerGas).toBe(200_000_000_000n)
    expect(polygon?.rpc && Redacted.value(polygon.rpc)).toBe(env.RPC)
    expect(polygon?.entryPoints).toHaveLength(3)
    expect(polygon?.creationCode).toMatch(/^0x60/)
    expect(polygon?.factory).toBeNull()
    expect(valid(production).networks.find(({ chainId }) => chainId === 31_337n)?.confirmations).toBe(3)
  })

  it("an account's own factory overrides the chain's profile", () => {
    const [acme, bolt] = valid(production).accountNetworks
    expect(acme?.profile.factory).toBe(factory)
    expect(bolt?.profile.factory).toBe(otherFactory)
    expect(acme?.profile.beacon).toBe("0x00000000000000000000000000000000000000Be")
    expect(acme?.profile.rpc && Redacted.value(acme.profile.rpc)).toBe(env.RPC)
  })

  it("sets a bundler per chain, and a different one or none per account", () => {
    const network = (over: object) => ({
      ...production.networks[0],
      bundler: { url: { env: "RPC" } },
      ...over
    })
    const acme = (own: object) => [
      { ...production.accounts[0], networks: [{ chainId: 137, factory, ...own }] },
      production.accounts[1]
    ]
    const bundlers = (own: object) => {
      const config = Result.getOrThrow(
        read(
          { ...production, accounts: acme(own), networks: [network({})] },
          { ...env, OWN: "https://own.example/key" }
        )
      )
      const { remoteBundler } = config.networks.find(({ chainId }) => chainId === 137n) ?? {}
      const [account] = config.accountNetworks
      return [remoteBundler, account?.profile.remoteBundler].map((url) => url && Redacted.value(url))
    }
    expect(bundlers({})).toEqual([env.RPC, env.RPC])
    expect(bundlers({ bundler: { url: { env: "OWN" } } })).toEqual([env.RPC, "https://own.example/key"])
    expect(bundlers({ bundler: null })).toEqual([env.RPC, null])
    const inline = { ...production, networks: [network({ bundler: { url: "https://key.example" } })] }
    expect(problems(inline).join()).toContain("networks[0].bundler.url: secrets stand in the configuration")
    expect(problems({ ...production, networks: [network({ bundler: "https://key.example" })] })).toEqual([
      'networks[0].bundler: expected {"url": Secret} or null'
    ])
  })

  it("reads secrets from files without the trailing line break", () => {
    writeFileSync(join(folder, "pepper"), "a pepper from a file\n")
    const config = valid({ ...production, keyPepper: { file: "pepper" } })
    expect(Redacted.value(config.keyPepper)).toBe("a pepper from a file")
  })

  it("prints no secret", () => {
    const config = valid(production)
    const printed = `${inspect(config, { depth: 9 })}${JSON.stringify(config, (_, value) => (typeof value === "bigint" ? `${value}` : value))}`
    for (const secret of [env.PEPPER, key, otherKey, "secret"]) expect(printed).not.toContain(secret)
  })
})

describe("the check of a configuration", () => {
  it("names every invalid field", () => {
    expect(
      [
        ...problems({
          ...production,
          profile: "staging",
          listen: { host: "", port: 70_000 },
          accounts: [
            {
              id: "x",
              name: "X",
              tier: "gold",
              requestsPerMinute: 0,
              requestsPerHour: 60_000_001,
              keys: [{ hash: "short" }],
              colour: "red",
              RequestsPerMinut: 5
            }
          ],
          Networks: [],
          networks: [
            { chainId: "137", SettledDepth: 1, defaultCustody: 0, maxFeePerGas: -1 },
            { factory: "0x12" }
          ]
        })
      ].sort()
    ).toEqual(
      [
        'profile: expected "development" or "production"',
        "listen.host: expected 1 to 128 characters without outer white space",
        "listen.port: expected an integer from 0 to 65535, got 70000",
        'accounts[0].tier: expected "free", "pro" or "enterprise"',
        'accounts[0].keys[0].hash: expected the 64 hex digits that "castellan keys hash" prints',
        "accounts[0].requestsPerMinute: expected an integer from 1 to 1000000, got 0",
        "accounts[0].requestsPerHour: expected an integer from 1 to 60000000, got 60000001",
        "accounts[0].colour: is not a known field",
        "accounts[0].RequestsPerMinut: is not a known field; did you mean requestsPerMinute?",
        "Networks: is not a known field; did you mean networks?",
        "networks[0].SettledDepth: is not a known field; did you mean settledDepth?",
        'networks[0].chainId: expected an integer from 1 to 9007199254740991, got "137"',
        "networks[0].defaultCustody: invalid wallet custody type",
        "networks[0].maxFeePerGas: expected a positive integer, as text when above 2^53, got -1",
        "networks[1].chainId: is missing",
        "networks[1].factory: expected an address: 0x and 40 hex digits"
      ].sort()
    )
  })

  it("names contradictory figures and a pepper that is too short", () => {
    expect(
      problems(
        {
          ...production,
          keyPepper: { env: "SHORT" },
          networks: [
            {
              chainId: 137,
              confirmations: 5,
              settledDepth: 2,
              maxFeePerGas: "1",
              maxPriorityFeePerGas: "5"
            }
          ]
        },
        { ...env, SHORT: "abc" }
      )
    ).toEqual([
      "networks[0].settledDepth: expected at least the confirmations",
      "networks[0].maxPriorityFeePerGas: expected at most maxFeePerGas",
      "keyPepper: expected at least 16 bytes"
    ])
  })

  it("names a key used twice, a port used twice and caps that permit no request", () => {
    const [acme, bolt] = production.accounts
    expect(problems({ ...production, accounts: [acme, { ...bolt, keys: [{ hash }] }] })).toEqual([
      "accounts[1].keys[0].hash: another key has this hash"
    ])
    const admin = { port: 8080, token: { env: "PEPPER" } }
    const taken = ["admin.port: listen has this port"]
    expect(problems({ ...production, admin })).toEqual(taken)
    expect(problems({ ...production, listen: { host: "10.0.0.1", port: 8080 }, admin })).toEqual([])
    expect(
      problems({ ...production, listen: { host: "10.0.0.1", port: 8080 }, admin: { ...admin, host: "::" } })
    ).toEqual(taken)
    expect(
      problems({ ...production, listen: { host: "::", port: 0 }, admin: { ...admin, port: 0 } })
    ).toEqual([])
    const positive = "expected a positive integer, as text when above 2^53"
    expect(
      problems({ ...production, networks: [{ chainId: 137, maxFeePerGas: 0, maxTransactionGas: "0" }] })
    ).toEqual([
      `networks[0].maxFeePerGas: ${positive}, got 0`,
      `networks[0].maxTransactionGas: ${positive}, got "0"`
    ])
  })

  it("names impossible hosts of the operator's port and suggests a correction", () => {
    const of = (...hosts: ReadonlyArray<string>) =>
      problems({ ...production, admin: { port: 0, token: { env: "PEPPER" }, hosts } })
    expect(
      of("castellan.internal", ".svc.cluster.local", "10.0.0.0/8", "fd00::/8", "[::1]", "10.1.2.3")
    ).toEqual([])
    expect(of("castellan.internal", "*.internal", "10.0.0.0/33")).toEqual([
      'admin.hosts[1]: "*.internal" matches no Host header: a * is compared as it is; ".example.internal" stands for every name below example.internal',
      'admin.hosts[2]: "10.0.0.0/33" matches no Host header: expected an IP address or a range of them, 10.0.0.0/8 for example'
    ])
  })

  it("names invalid URLs without repeating them", () => {
    const why = "expected an http or https URL without user information"
    for (const secret of [
      "node.example/v1/secret",
      "wss://node.example/secret",
      "https://u:secret@node.example"
    ]) {
      const variables = { ...env, BAD: secret }
      const bad = { env: "BAD" }
      const [acme, bolt] = production.accounts
      expect(
        problems(
          {
            ...production,
            accounts: [{ ...acme, networks: [{ chainId: 137, factory, bundler: { url: bad } }] }, bolt],
            networks: [{ chainId: 137, rpc: bad, bundler: { url: bad } }],
            telemetry: { url: bad }
          },
          variables
        )
      ).toEqual([
        `networks[0].rpc: ${why}`,
        `networks[0].bundler.url: ${why}`,
        `accounts[0].networks[0].bundler.url: ${why}`,
        `telemetry.url: ${why}`
      ])
    }
  })

  it("reports a file that is not JSON, with its path", () => {
    const said = (text: string) =>
      Result.getOrThrow(Result.flip(Config.fromText(text, "/etc/castellan.json", {}, folder))).message
    const broken = "the configuration /etc/castellan.json cannot be used:\n  it is not JSON"
    expect(said("{")).toBe(`${broken}: it ends too early, line 1, column 2`)
    expect(said('{\n  "accounts": [1 2]\n}')).toBe(`${broken}: line 2, column 18`)
    expect(said('{ "accounts": ')).toBe(`${broken}: it ends too early, line 1, column 15`)
    expect(said('{\n  "keyPepper": s3cr3t\n}')).not.toContain("s3cr3t")
    expect(said('\uFEFF{ "accounts": ')).toBe(`${broken}: it begins with a byte order mark`)
  })

  it("reports a value that should be an object without further detail", () => {
    expect(problems([])).toEqual([": expected an object"])
    expect(problems({ ...production, listen: 8080, accounts: [7] })).toEqual([
      "listen: expected an object",
      "accounts[0]: expected an object"
    ])
  })

  it("names the missing environment variable or file of a secret", () => {
    expect(problems({ ...production, keyPepper: { env: "NOWHERE" } })).toEqual([
      "keyPepper: the environment variable NOWHERE is not set"
    ])
    expect(problems(production, { ...env, KEY: " " })).toEqual([
      "signers[0].privateKey: the environment variable KEY is empty"
    ])
    expect(problems({ ...production, keyPepper: { file: "absent" } })).toEqual([
      `keyPepper: cannot read the file ${join(folder, "absent")} (ENOENT)`
    ])
  })

  it("does not repeat a secret written where its variable or file belongs", () => {
    const url = "postgres://castellan:hunter2@db.example/castellan"
    for (const secret of [key, key.slice(2), url, "correct horse battery"]) {
      const [variable, file] = problems({
        ...production,
        keyPepper: { env: secret },
        systemKeys: { deployer: { file: secret.includes(" ") ? url : secret } }
      })
      expect(variable).toBe(
        'keyPepper: the environment variable is not set; "env" takes a name, never the secret itself'
      )
      expect(file).toBe(
        'systemKeys.deployer: cannot read the file (ENOENT); "file" takes a path, never the secret itself'
      )
    }
  })

  it("rejects a literal secret outside the development profile without repeating it", () => {
    const error = Result.getOrThrow(
      Result.flip(
        read({
          ...production,
          keyPepper: "pepper in the open",
          systemKeys: { deployer: key },
          networks: [{ chainId: 137, rpc: "https://node.example/key", colour: key }]
        })
      )
    )
    expect(error.message).not.toMatch(/pepper in the open|abab|node\.example/)
    expect(valid({ ...development, systemKeys: { deployer: key } }).keys.systemKeys.deployer).toBeDefined()
    expect(problems({ ...production, systemKeys: { deployer: key } })).toEqual([
      'systemKeys.deployer: secrets stand in the configuration of a development profile only; use {"env": "NAME"} or {"file": "path"}'
    ])
  })

  it("rejects private keys outside the development profile unless allowed by name", () => {
    const why = "private keys are for tests; outside the development profile they need allowPrivateKeys: true"
    expect(problems({ ...production, allowPrivateKeys: false })).toEqual([
      `signers[0].privateKey: ${why}`,
      `systemKeys.serviceEoa: ${why}`
    ])
  })

  it("rejects a signer or factory shared by name outside the development profile", () => {
    const [signer] = production.signers
    expect(
      problems({
        ...production,
        signers: [{ ...signer, shared: true }],
        networks: [{ ...production.networks[0], sharedFactory: true }]
      })
    ).toEqual([
      "networks[0].sharedFactory: a shared factory is possible in the development profile only",
      "signers[0].shared: a shared signer is possible in the development profile only"
    ])
  })

  it("rejects one factory for two accounts", () => {
    const accounts = production.accounts.map(({ networks: _, ...account }) => account)
    const networks = [{ chainId: 137, factory }]
    expect(problems({ ...production, accounts, networks })).toEqual([
      `networks: accounts acme and bolt share the factory ${factory} on chain 137; each needs its own`
    ])
    expect(
      problems({ ...development, accounts, networks: [{ chainId: 137, factory, sharedFactory: true }] })
    ).toEqual([])
  })

  it("rejects a reachable or production development profile", () => {
    expect(problems({ ...development, listen: { host: "0.0.0.0", port: 0 } })).toEqual([
      "listen.host: the development profile listens on a loopback address only"
    ])
    expect(problems(development, { ...env, NODE_ENV: "production" })).toEqual([
      "profile: the development profile does not start while NODE_ENV is production"
    ])
  })

  it("names accounts, chains or keys that are duplicate or unknown", () => {
    const [acme] = production.accounts
    expect(
      problems({
        ...production,
        accounts: [acme, { ...acme, keys: [], networks: [{ chainId: 1, factory: otherFactory }] }],
        signers: [{ accounts: ["missing"], clientId: "x", privateKey: { env: "KEY" } }],
        networks: [...production.networks, { chainId: 137 }]
      })
    ).toEqual([
      "accounts[1].id: another account is called acme",
      "signers[0].accounts: no account is called missing",
      "signers[0]: needs exactly one of versionId and assetId",
      "networks[2].chainId: chain 137 is listed twice",
      "accounts[1].networks[0].chainId: networks has no chain 1"
    ])
  })

  it("reports a missing path or file", () => {
    const message = (variables: Readonly<Record<string, string>>) =>
      Result.getOrThrow(Result.flip(Config.load(variables))).message
    expect(message({})).toContain("CASTELLAN_CONFIG is not set")
    expect(message({ CASTELLAN_CONFIG: join(folder, "absent.json") })).toContain("there is no such file")
    expect(message({ CASTELLAN_CONFIG: folder })).toContain("the file cannot be read (EISDIR)")
  })
})
