import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as SchemaAST from "effect/SchemaAST"
import * as Config from "../../src/hosts/config/Config.js"
import { ConfigFile } from "../../src/hosts/config/ConfigFile.js"
import * as KeyProviders from "../../src/hosts/config/KeyProviders.js"

const root = new URL("../..", import.meta.url)
const configuring = readFileSync(new URL("docs/configuration.md", root), "utf8")
const signers = readFileSync(new URL("docs/signers.md", root), "utf8")

/** Names of all fields of a schema's encoded side, at every depth. */
const fieldsOf = (ast: SchemaAST.AST): ReadonlyArray<string> => {
  switch (ast._tag) {
    case "Objects":
      return ast.propertySignatures.flatMap(({ name, type }) => [String(name), ...fieldsOf(type)])
    case "Arrays":
      return [...ast.elements, ...ast.rest].flatMap(fieldsOf)
    case "Union":
      return ast.types.flatMap(fieldsOf)
    default:
      return []
  }
}

const env = {
  ACME_SIGNER: `0x${"11".repeat(32)}`,
  DEPLOYER: `0x${"22".repeat(32)}`,
  SERVICE_EOA: `0x${"33".repeat(32)}`,
  POLYGON_RPC: "https://node.example"
}

describe("docs/security.md", () => {
  it("docs/security.md names existing tests", () => {
    const page = readFileSync(new URL("docs/security.md", root), "utf8")
    const named = [...page.matchAll(/\[(test\/[^\]]+)\]/g)].flatMap(([, list = ""]) => list.split(", "))
    expect(named.length).toBeGreaterThan(10)
    expect(named.filter((path) => !existsSync(new URL(path, root)))).toEqual([])
  })
})

describe("docs/architecture.md", () => {
  it("docs/architecture.md names existing folders and files", () => {
    const page = readFileSync(new URL("docs/architecture.md", root), "utf8")
    const files = [
      ...page.matchAll(/\b(?:answers|application|hosts|intake|lanes|endpoints|ports|prepare)\/[\w/]+\.ts/g)
    ].map(([path]) =>
      path.startsWith("hosts/") || path.startsWith("application/") ? `src/${path}` : `src/application/${path}`
    )
    const folders = [...page.matchAll(/^\| `([a-z]+\/)`/gm)].map(
      ([, folder = ""]) => `src/application/${folder}`
    )
    expect(files.length).toBeGreaterThan(15)
    expect(folders.length).toBeGreaterThan(8)
    expect([...files, ...folders].filter((path) => !existsSync(new URL(path, root)))).toEqual([])
  })
})

describe("docs/signers.md", () => {
  it("docs/signers.md matches the record of every kind of key provider", () => {
    const rows = signers.split("\n").filter((line) => line.startsWith("| `"))
    const names = Object.keys(KeyProviders.kinds) as ReadonlyArray<KeyProviders.Kind>
    expect(names.length).toBeGreaterThan(5)
    for (const name of names) {
      const { about, key, page } = KeyProviders.kinds[name].help
      expect(rows.some((row) => row.startsWith(`| \`${name}\` | ${about} |`))).toBe(true)
      expect(rows.some((row) => row.startsWith(`| \`${name}\` |`) && row.endsWith(`| ${key} |`))).toBe(true)
      expect(readFileSync(new URL(page, root), "utf8")).toContain(`"kind": "${name}"`)
    }
  })
})

describe("docs/configuration.md", () => {
  it("docs/configuration.md names every field of the configuration, together with docs/signers.md", () => {
    const fields = new Set(fieldsOf(SchemaAST.toEncoded(ConfigFile.ast)))
    expect(fields.size).toBeGreaterThan(40)
    expect([...fields].filter((field) => !`${configuring}${signers}`.includes(field))).toEqual([])
  })

  it("docs/configuration.md shows a configuration that the service starts with", () => {
    const example = /```json\n([\s\S]*?)```/.exec(configuring)?.[1] ?? ""
    const pepper = JSON.stringify(fileURLToPath(new URL("package.json", root)))
    const read = Config.fromText(
      example.replace('"/run/secrets/castellan-pepper"', pepper),
      "docs/configuration.md",
      env,
      "/nowhere"
    )
    expect(Result.isSuccess(read) ? [] : read.failure.problems).toEqual([])
  })

  it("docs/configuration.md states the actual defaults", () => {
    const plain = Result.getOrThrow(
      Config.fromText(
        JSON.stringify({
          profile: "development",
          listen: { host: "127.0.0.1", port: 0 },
          database: { path: "x" },
          keyPepper: "a pepper of many bytes",
          accounts: [],
          networks: []
        }),
        "defaults",
        {},
        "/nowhere"
      )
    )
    const polygon = plain.networks.find(({ chainId }) => chainId === 137n)
    const base = plain.networks.find(({ chainId }) => chainId === 8_453n)
    const row = (field: string) =>
      configuring.split("\n").find((line) => line.startsWith(`| \`${field}\``)) ?? ""
    const grouped = (value: number | bigint | undefined) => value?.toLocaleString("en-US") ?? "none"
    const gwei = (value: bigint | undefined) => grouped((value ?? 0n) / 1_000_000_000n)
    expect(row("limits.bodyBytes")).toContain(grouped(plain.limits.bodyBytes))
    expect(row("limits.arrayElements")).toContain(grouped(plain.limits.arrayElements))
    expect(row("limits.concurrentRequests")).toContain(grouped(plain.limits.concurrentRequests))
    expect(row("limits.drainMillis")).toContain(grouped(plain.limits.drainMillis))
    expect(row("networks[].maxTransactionGas")).toContain(grouped(polygon?.caps.transactionGas))
    const least = (chainId: bigint) =>
      gwei(plain.networks.find((network) => network.chainId === chainId)?.minPriorityFeePerGas)
    expect(row("networks[].minPriorityFeePerGas")).toContain(
      `${least(137n)} gwei on 137, ${least(80_002n)} on 80002, otherwise ${least(8_453n)}`
    )
    expect(row("networks[].receiptTimeoutMillis")).toContain(grouped(polygon?.receiptTimeoutMillis))
    expect(row("networks[].pollIntervalMillis")).toContain(`\`development\` ${polygon?.pollIntervalMillis}`)
    expect(row("networks[].maxFeePerGas")).toContain(
      `${gwei(polygon?.caps.maxFeePerGas)} and ${gwei(polygon?.caps.maxPriorityFeePerGas)} gwei; on Base ${gwei(base?.caps.maxFeePerGas)} and ${gwei(base?.caps.maxPriorityFeePerGas)} gwei`
    )
  })
})
