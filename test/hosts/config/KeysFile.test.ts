import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { inspect } from "node:util"
import { afterAll, describe, expect, it } from "@effect/vitest"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as Config from "../../../src/hosts/config/Config.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-keys-"))
writeFileSync(join(folder, "key.json"), "a keystore\n")
afterAll(() => rmSync(folder, { recursive: true }))

const env = {
  PEPPER: "a pepper of many bytes",
  PIN: "pin-4711",
  ID: "id-4711",
  SECRET: "secret-4711",
  SESSION: "session-4711",
  KEY: `0x${"ab".repeat(32)}`
}

const address = "0x00000000000000000000000000000000000000F2"

const providers = [
  {
    kind: "pkcs11",
    name: "hsm",
    module: "libsofthsm2.so",
    token: "castellan",
    pin: { env: "PIN" },
    sessions: 4
  },
  {
    kind: "aws-kms",
    name: "aws",
    region: "eu-central-1",
    endpoint: "http://localhost:4566",
    credentials: {
      accessKeyId: { env: "ID" },
      secretAccessKey: { env: "SECRET" },
      sessionToken: { env: "SESSION" }
    }
  },
  { kind: "aws-kms", name: "aws default", region: "eu-central-1" },
  { kind: "gcp-kms", name: "gcp", endpoint: "https://kms.example", credentialsFile: "gcp.json" },
  {
    kind: "azure-kv",
    name: "azure",
    vaultUrl: "https://vault.example",
    credentials: { tenantId: "tenant", clientId: "client", clientSecret: { env: "SECRET" } }
  },
  {
    kind: "fireblocks",
    name: "mpc",
    apiKey: { env: "ID" },
    secretKey: { env: "SECRET" },
    basePath: "https://fireblocks.example/v1",
    pollMillis: 200,
    timeoutMillis: 20_000
  },
  {
    kind: "private-key",
    name: "files",
    keys: [{ name: "one", keystore: "key.json", password: { env: "SECRET" } }]
  }
]

const file = {
  profile: "production",
  listen: { host: "127.0.0.1", port: 0 },
  database: { path: "x" },
  keyPepper: { env: "PEPPER" },
  accounts: [{ id: "acme", name: "Acme", tier: "pro", keys: [] }],
  providers,
  signers: [
    { accounts: ["acme"], clientId: "acme", versionId: "1", provider: "hsm", key: "id:01", address },
    { accounts: ["acme"], clientId: "acme", assetId: "MATIC", provider: "mpc", key: "7/MATIC" }
  ],
  systemKeys: {
    deployer: { provider: "aws", key: "alias/deployer", address },
    serviceEoa: { provider: "files", key: "one" },
    sponsor: { provider: "gcp", key: "projects/p/locations/l/keyRings/r/cryptoKeys/k/cryptoKeyVersions/1" }
  },
  networks: []
}

const read = (text: unknown) => Config.fromText(JSON.stringify(text), "test.json", env, folder)
const valid = (text: unknown) => Result.getOrThrowWith(read(text), (error) => error)
const problems = (text: unknown): ReadonlyArray<string> =>
  Result.match(read(text), {
    onFailure: (error) => error.problems.map(({ message, path }) => `${path}: ${message}`),
    onSuccess: () => []
  })

const shown = (value: unknown): unknown => {
  if (Redacted.isRedacted(value)) return { secret: Redacted.value(value) }
  if (Array.isArray(value)) return value.map(shown)
  if (typeof value === "object" && value !== null)
    return Object.fromEntries(Object.entries(value).map(([name, each]) => [name, shown(each)]))
  return value
}

const secret = (text: string) => ({ secret: text })

describe("a configuration of keys", () => {
  it("gives each provider its options, with secrets read and absolute paths", () => {
    expect(shown(valid(file).keys.providers)).toEqual([
      { ...providers[0], module: join(folder, "libsofthsm2.so"), pin: secret(env.PIN) },
      {
        ...providers[1],
        credentials: {
          accessKeyId: secret(env.ID),
          secretAccessKey: secret(env.SECRET),
          sessionToken: secret(env.SESSION)
        }
      },
      providers[2],
      {
        ...providers[3],
        endpoint: { host: "kms.example", port: 443, protocol: "https" },
        credentialsFile: join(folder, "gcp.json")
      },
      {
        ...providers[4],
        credentials: { tenantId: "tenant", clientId: "client", clientSecret: secret(env.SECRET) }
      },
      { ...providers[5], apiKey: secret(env.ID), secretKey: secret(env.SECRET) },
      {
        kind: "private-key",
        name: "files",
        keys: { one: { json: secret("a keystore"), password: secret(env.SECRET) } }
      }
    ])
  })

  it("locates each signer and each system key", () => {
    const { signers, systemKeys } = valid(file).keys
    expect(signers).toEqual([
      {
        accountIds: ["acme"],
        clientId: "acme",
        versionId: "1",
        shared: false,
        source: { provider: "hsm", key: "id:01", address }
      },
      {
        accountIds: ["acme"],
        clientId: "acme",
        assetId: "MATIC",
        shared: false,
        source: { provider: "mpc", key: "7/MATIC" }
      }
    ])
    expect(systemKeys).toEqual(file.systemKeys)
  })

  it("prints no secret", () => {
    const config = valid(file)
    const printed = `${inspect(config.keys, { depth: 9 })}${JSON.stringify(config.keys)}`
    for (const text of ["4711", "a keystore"]) expect(printed).not.toContain(text)
  })

  it("accepts encrypted keystores in production, and raw keys only if allowed", () => {
    const raw = { ...providers[6], keys: [{ name: "raw", privateKey: { env: "KEY" } }] }
    expect(problems({ ...file, providers: [...providers.slice(0, 6), raw] })).toEqual([
      "providers[6].keys[0].privateKey: private keys are for tests; outside the development profile they need allowPrivateKeys: true"
    ])
    expect(problems({ ...file, allowPrivateKeys: true, providers: [...providers.slice(0, 6), raw] })).toEqual(
      []
    )
  })
})

describe("the check of a configuration of keys", () => {
  it("names unknown and duplicate providers", () => {
    expect(
      problems({
        ...file,
        providers: [providers[0], { ...providers[0] }, { ...providers[2], name: "configuration" }],
        signers: [{ ...file.signers[0], provider: "nowhere" }],
        systemKeys: { sponsor: { provider: "elsewhere", key: "k" } }
      })
    ).toEqual([
      "providers[1].name: another provider is called hsm",
      "providers[2].name: this name is taken",
      "signers[0].provider: no provider is called nowhere",
      "systemKeys.sponsor.provider: no provider is called elsewhere"
    ])
  })

  it("names an unknown kind, unknown fields and missing fields", () => {
    expect(
      [
        ...problems({
          ...file,
          providers: [
            { kind: "abacus", name: "a" },
            { ...providers[0], region: "x" },
            { kind: "azure-kv", name: "b" },
            { ...providers[5], timeoutMillis: 60_000 }
          ]
        })
      ].sort()
    ).toEqual([
      'providers[0].kind: expected "private-key" | "pkcs11" | "aws-kms" | "gcp-kms" | "azure-kv" | "fireblocks"',
      "providers[1].region: is not a known field",
      "providers[2].vaultUrl: is missing",
      "providers[3].timeoutMillis: expected an integer from 1000 to 24000, got 60000"
    ])
  })

  it("rejects credentials sent in the clear or in a URL", () => {
    for (const endpoint of [
      "http://kms.example",
      "http://127.0.0.1.example",
      "https://user:password@kms.example",
      "ftp://kms.example",
      "kms.example",
      ""
    ])
      expect(
        problems({ ...file, providers: [...providers, { ...providers[2], name: "x", endpoint }] })
      ).toEqual([
        "providers[7].endpoint: expected an https URL without credentials; http to a loopback address only"
      ])
  })

  it("rejects a key in two places, in none, or half given", () => {
    const either = "needs either privateKey, or provider and key"
    const { key: _, provider: __, ...nowhere } = file.signers[0] ?? { key: "", provider: "" }
    expect(
      problems({
        ...file,
        allowPrivateKeys: true,
        signers: [
          { ...file.signers[0], privateKey: { env: "KEY" } },
          nowhere,
          { ...nowhere, provider: "hsm" },
          { ...nowhere, key: "x" }
        ]
      })
    ).toEqual([0, 1, 2, 3].map((index) => `signers[${index}]: ${either}`))
    const entry = { name: "one" }
    const wrong = [
      entry,
      { ...entry, keystore: "key.json" },
      { ...entry, privateKey: { env: "KEY" }, password: { env: "PIN" } }
    ]
    expect(
      problems({
        ...file,
        allowPrivateKeys: true,
        providers: [
          ...providers,
          ...wrong.map((key, index) => ({ kind: "private-key", name: `w${index}`, keys: [key] }))
        ]
      })
    ).toEqual(
      [7, 8, 9].map(
        (index) => `providers[${index}].keys[0]: needs either privateKey, or keystore and password`
      )
    )
  })

  it("names the missing file or variable of a provider", () => {
    expect(
      problems({
        ...file,
        providers: [
          { ...providers[0], pin: { env: "NOWHERE" } },
          ...providers.slice(1, 6),
          { ...providers[6], keys: [{ name: "one", keystore: "absent.json", password: { env: "PIN" } }] }
        ]
      })
    ).toEqual([
      "providers[0].pin: the environment variable NOWHERE is not set",
      `providers[6].keys[0].keystore: cannot read the file ${join(folder, "absent.json")} (ENOENT)`
    ])
  })

  it("rejects a literal secret outside the development profile without repeating it", () => {
    const error = Result.getOrThrow(
      Result.flip(
        read({
          ...file,
          providers: [{ ...providers[0], pin: "pin-0815" }, ...providers.slice(1)],
          systemKeys: { deployer: { ...file.systemKeys.deployer, pin: "pin-0815" } }
        })
      )
    )
    expect(error.problems.length).toBeGreaterThan(0)
    expect(error.message).not.toContain("0815")
  })
})
