import { execFileSync } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import type { EntryPointVersion } from "../src/hosts/cli/deploy/EntryPoints.js"
import { startChain } from "../test/support/suite/Chain.js"
import type { Account } from "./gas/Account.js"
import { compilerSettings, packageVersion, peersFolder } from "./gas/compile.js"
import { type Measured, measure } from "./gas/measure.js"
import { simpleAccount } from "./gas/SimpleAccount.js"
import { soladyAccount } from "./gas/Solady.js"
import { suiteAccounts } from "./gas/suite.js"

/**
 * `npm run bench:gas`: writes the gas of this suite's wallets and of other accounts, on one development chain at the
 * canonical EntryPoints, into the table of docs/contracts.md. Sources of other accounts are installed into bench/peers/gas.
 */
const docs = fileURLToPath(new URL("../docs/contracts.md", import.meta.url))
const [begin, end] = [
  "<!-- Written by `npm run bench:gas`. -->",
  "<!-- End of what `npm run bench:gas` writes. -->"
]

const versions = ["v0.7", "v0.8", "v0.6"] as const satisfies ReadonlyArray<EntryPointVersion>

const versionIn = (folder: string, name: string) =>
  packageVersion(`${folder}/node_modules/${name}/package.json`)
const ours = fileURLToPath(new URL("..", import.meta.url))

const format = (gas: number) => gas.toLocaleString("en-US")

const row = ({ build, name, source, version }: Account, gas: Measured): string =>
  `| ${version} | ${name} | ${source} | ${build} | ${[gas.create, gas.createEachOfFive, gas.token, gas.native, gas.tokenEachOfTen].map(format).join(" | ")} |`

const table = (rows: ReadonlyArray<string>): string =>
  [
    begin,
    "",
    `Chain: anvil ${versionIn(ours, "@foundry-rs/anvil")}. This suite's settings: ${compilerSettings}. SimpleAccount of v0.6 is compiled with @openzeppelin/contracts ${versionIn(peersFolder, "@openzeppelin/contracts-v4")}, that of v0.7 and v0.8 with ${versionIn(ours, "@openzeppelin/contracts")}.`,
    "",
    "| EntryPoint | account | sources | build | creation | each of five | ERC-20 transfer | native transfer | ERC-20, each of ten |",
    "|---|---|---|---|---|---|---|---|---|",
    ...rows,
    "",
    end
  ].join("\n")

const install = () =>
  execFileSync(
    "npm",
    ["ci", "--prefix", peersFolder, "--ignore-scripts", "--no-audit", "--no-fund", "--silent"],
    { stdio: "inherit" }
  )

const accountsOf = async (chain: Awaited<ReturnType<typeof startChain>>, version: EntryPointVersion) => [
  ...(await suiteAccounts(chain, version)),
  await simpleAccount(chain, version, false),
  await simpleAccount(chain, version, true),
  // Solady's account does not support the layout of v0.6 ops.
  ...(version === "v0.6" ? [] : [await soladyAccount(chain, version)])
]

install()
const chain = await startChain()
try {
  const rows: Array<string> = []
  for (const version of versions)
    for (const account of await accountsOf(chain, version)) {
      rows.push(row(account, await measure(chain, account)))
      console.log(rows.at(-1))
    }
  const text = readFileSync(docs, "utf8")
  const [from, to] = [text.indexOf(begin), text.indexOf(end)]
  if (from < 0 || to < from) throw new Error("docs/contracts.md has no place for the table")
  writeFileSync(docs, text.slice(0, from) + table(rows) + text.slice(to + end.length))
} finally {
  await chain.stop()
}
