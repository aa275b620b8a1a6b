import { randomBytes } from "node:crypto"
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import * as Command from "effect/cli/Command"
import * as Flag from "effect/cli/Flag"
import * as Effect from "effect/Effect"
import { computeAddress } from "ethers"
import { isHttpUrl, notHttpUrl } from "../../config/FileFields.js"
import * as Plan from "../deploy/Plan.js"
import * as InitialConfig from "../support/InitialConfig.js"
import { chainOf, help, json, Operator, optional, report, text } from "../support/Operator.js"
import * as Provider from "../support/Provider.js"
import * as Table from "../support/Table.js"

const roles = Object.keys(InitialConfig.roles) as ReadonlyArray<InitialConfig.Role>
const keyPlaces = ["file", ...Object.keys(InitialConfig.providers)]

/** The flag's value; without it, the answer of a person or the default. */
const chosen = (flag: string | undefined, question: string, byDefault: string) =>
  flag === undefined
    ? Effect.flatMap(Operator, ({ answer }) => answer(question, byDefault))
    : Effect.succeed(flag)

/** A secret file that only its owner can read; an existing one is kept. */
const keep = (file: string, content: string): Effect.Effect<void, string> =>
  Effect.try({
    try: () => {
      mkdirSync(dirname(file), { recursive: true, mode: 0o700 })
      if (!existsSync(file)) writeFileSync(file, `${content}\n`, { mode: 0o600 })
    },
    catch: (why) =>
      `${file} cannot be written${why instanceof Error && "code" in why ? ` (${String(why.code)})` : ""}`
  })

/** The chains of the nodes, and those whose node is named later. */
const chainsOf = (urls: ReadonlyArray<string>, ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const chains = new Map<number, string | undefined>()
    for (const id of ids) chains.set(Number(yield* chainOf(id, "--chain: ")), undefined)
    for (const url of urls) {
      if (!isHttpUrl(url)) return yield* Effect.fail(`--rpc: ${notHttpUrl}`)
      chains.set(yield* Effect.mapError(Provider.chainIdOf(url), (why) => `--rpc: ${why}`), url)
    }
    return chains.size === 0
      ? yield* Effect.fail("no chain: --rpc URL names its node, --chain CHAIN a chain whose node comes later")
      : [...chains]
  })

const prompted = (
  place: { readonly file: string; readonly secrets: string },
  chains: ReadonlyArray<readonly [number, string | undefined]>,
  addresses: Partial<Record<InitialConfig.Role, string>>,
  { account, keys }: InitialConfig.Answers
): string => {
  const { deployer = "DEPLOYER", sponsor = "SPONSOR" } = addresses
  const own = `--config ${place.file}`
  return [
    `${place.file} is the configuration, with a comment for each part.`,
    `${place.secrets}/ holds its secrets: back it up, and keep it out of version control.`,
    ...(keys === "file"
      ? ["", Table.align(roles.map((role) => [role, addresses[role] ?? "", InitialConfig.roles[role]]))]
      : ["", `Create the keys, and replace their names in ${place.file}: docs/signers/${keys}.md.`]),
    "",
    "Next, deploy the contracts. OWNER and BEACON_OWNER are cold addresses, PAYER holds the private key that pays:",
    ...chains.map(
      ([chainId]) =>
        `  npx castellan deploy ${own} --chain ${chainId} --account ${account} --deployer ${deployer} --sponsor ${sponsor} --owner OWNER --beacon-owner BEACON_OWNER --payer env:PAYER`
    ),
    "Then check everything, issue an API key, and start the service:",
    `  npx castellan config check --connect ${own}`,
    `  npx castellan keys create ${account} ${own}`,
    `  npx castellan serve ${own}`
  ].join("\n")
}

export const commands = [
  Command.make("init", {
    rpc: text("rpc", "URL", "the node of a chain, whose chain id is read; one flag for each chain").pipe(
      Flag.atLeast(0)
    ),
    chain: text("chain", "CHAIN", "chain id; the variable CASTELLAN_RPC_CHAIN names its node later").pipe(
      Flag.atLeast(0)
    ),
    keys: optional("keys", "PLACE", `place of the keys: ${keyPlaces.join(", ")}; default: file`),
    database: optional("database", "FILE", "SQLite file, or postgres; default: castellan.sqlite"),
    account: optional("account", "ID", "the first account; default: main"),
    out: optional("out", "FILE", "the configuration; default: castellan.jsonc"),
    json
  }).pipe(
    help(
      "Writes a commented configuration and its secrets, and prints the next commands. Asks for what no flag names.",
      "",
      "--rpc https://node.example --keys aws-kms --database postgres",
      "--chain 137 --chain 8453 --account acme"
    ),
    report(function* (given) {
      const file = resolve(given.out ?? "castellan.jsonc")
      if (existsSync(file)) return yield* Effect.fail(`${file} exists: name another file with --out`)
      const isNamed = given.rpc.length + given.chain.length > 0
      const nodes = isNamed
        ? given.rpc
        : (yield* chosen(undefined, "URLs of nodes, one for each chain, separated by spaces", ""))
            .split(/\s+/)
            .filter((url) => url !== "")
      const chains = yield* chainsOf(nodes, given.chain)
      const keys = yield* chosen(given.keys, `place of the keys (${keyPlaces.join(", ")})`, "file")
      if (!keyPlaces.includes(keys)) return yield* Effect.fail(`--keys: expected ${keyPlaces.join(", ")}`)
      const database = yield* chosen(given.database, "SQLite file, or postgres", "castellan.sqlite")
      const account = yield* chosen(given.account, "id of the first account", "main")
      if (!/^[A-Za-z0-9][\w.-]{0,63}$/.test(account))
        return yield* Effect.fail("--account: expected 1 to 64 letters, digits, dots, dashes and underscores")

      const answers: InitialConfig.Answers = {
        account,
        keys,
        database,
        chains: chains.map(([chainId, url]) => ({
          chainId,
          rpc: url === undefined ? { env: Plan.rpcVariable(chainId) } : { file: `secrets/rpc-${chainId}` }
        }))
      }
      const secrets = join(dirname(file), "secrets")
      yield* keep(join(secrets, "key-pepper"), randomBytes(32).toString("base64url"))
      yield* keep(join(secrets, "admin-token"), randomBytes(32).toString("base64url"))
      for (const [chainId, url] of chains)
        if (url !== undefined) yield* keep(join(secrets, `rpc-${chainId}`), url)
      const addresses: Partial<Record<InitialConfig.Role, string>> = {}
      if (keys === "file")
        for (const role of roles) {
          const place = join(secrets, role)
          yield* keep(place, `0x${randomBytes(32).toString("hex")}`)
          addresses[role] = computeAddress(readFileSync(place, "utf8").trim())
        }
      yield* keep(file, InitialConfig.text(answers).trimEnd())
      const place = {
        file: relative(process.cwd(), file) || file,
        secrets: relative(process.cwd(), secrets) || secrets
      }
      return {
        text: prompted(place, chains, addresses, answers),
        json: { file, secrets, chains: chains.map(([chainId]) => chainId), addresses }
      }
    })
  )
]

export const notes = [
  "An existing secret is kept, so that a second run uses the same keys.",
  "castellan deploy --config FILE fills in the addresses of the contracts."
]

export const environment = []
