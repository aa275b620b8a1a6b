import { readFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "vitest"
import * as Guides from "../scenarios/docs/Guides.js"
import * as Snippets from "../scenarios/docs/Snippets.js"
import { root } from "../support/process/Program.js"

/**
 * Every snippet of README.md and of docs/ is run by a test, or is listed here with the reason why not. A new snippet
 * without either fails.
 */

const read = (path: string): string => readFileSync(join(root, path), "utf8")

/** Pages whose commands a test runs from the first to the last, by the test's own lists. */
const followed = new Set(
  [Guides.onDevelopmentStack, Guides.onAmoy, Guides.onBase, Guides.onHsm, Guides.onDatabase].flatMap(
    (pages) => pages.map((page) => `docs/${page}`)
  )
)

/** Programs that test files contain, line by line. */
const programs: Readonly<Record<string, string>> = {
  "docs/library.md": "test/embed/program.ts",
  "docs/clients.md":
    "test/sdk/smoke.go test/sdk/smoke.java test/sdk/smoke.py test/sdk/smoke.ts test/embed/called.ts",
  "docs/contracts.md": "test/embed/deployed.ts",
  "docs/operations.md": "test/embed/mounted.ts",
  "docs/passkeys.md": "src/hosts/http/playground/script.js",
  "docs/watches.md": "test/embed/called.ts"
}

/** The test that runs a snippet from its page, or an equal one: page, heading or "*", language. */
const shown: ReadonlyArray<readonly [page: string, heading: string, language: string, by: string]> = [
  ["README.md", "Quick start", "sh", ".ci/run"],
  ["README.md", "Quick start", "js", "test/scenarios/dev.test.ts"],
  ["README.md", "Quick start", "text", "test/scenarios/dev.test.ts"],
  ["docs/install.md", "Installation", "sh", "test/package/Readme.ts"],
  ["docs/install.md", "On your chain", "sh", "test/scenarios/docs/snippets.test.ts"],
  ["docs/contracts.md", "Deployment", "sh", "test/scenarios/docs/snippets.test.ts"],
  ["docs/deployment.md", "Kubernetes", "yaml", "test/deploy/formats.test.ts"],
  ["docs/messages.md", "*", "js", "test/scenarios/http/signMessage.test.ts"],
  ["docs/configuration.md", "*", "json", "test/house/docs.test.ts"],
  ["docs/spending-rules.md", "*", "json", "test/hosts/cli/commands/policies.test.ts"],
  ["docs/topups.md", "*", "json", "test/scenarios/topups/topUps.test.ts"],
  ["docs/watches.md", "*", "js", "test/scenarios/http/watches.test.ts"],
  ["docs/decision-hook.md", "*", "json", "test/hosts/config/decisionHook.test.ts"],
  ["docs/decision-hook.md", "*", "js", "test/scenarios/policies/decisionHook.test.ts"],
  ["docs/webhooks.md", "*", "js", "test/ports/webhooks/Deliver.test.ts"],
  ["docs/signers/pkcs11.md", "*", "json", "test/scenarios/docs/snippets.test.ts"],
  ["docs/signers/pkcs11.md", "3. Create a key", "", "test/scenarios/docs/snippets.test.ts"],
  ["docs/cli.md", "*", "text", "test/hosts/cli/Program.test.ts"],
  ["docs/cli-operating.md", "*", "text", "test/hosts/cli/Program.test.ts"]
]

/** Snippets that are not run, with the reason. */
const excepted: ReadonlyArray<readonly [page: string, language: string, why: string]> = [
  ["docs/architecture.md", "", "a drawing, whose files test/house/docs.test.ts looks for"],
  ["docs/clients.md", "sh", "test/sdk/sdk.test.ts generates the SDKs without installing them"],
  ["docs/layouts.md", "", "layouts, which test/solidity/live/vectors.test.ts holds"],
  ["docs/layouts.md", "solidity", "layouts, which test/solidity/live/vectors.test.ts holds"],
  ["docs/custody.md", "json", "requests of wallets that a reader has; test/scenarios/custody sends such"],
  ["docs/deployment.md", "sh", "need Docker, a cluster or systemd; test:image runs the Dockerfile's steps"],
  ["docs/executing.md", "json", "a request of wallets that a reader has; test/scenarios/custody sends such"],
  ["docs/guides/production.md", "text", "commands on a reader's configuration; the README's are run"],
  ["docs/guides/preview.md", "json", "the answer to the command above it, which checks its net"],
  ["docs/guides/sponsored-gas.md", "json", "a part of a configuration, such as every test chain has"],
  ["docs/messages.md", "json", "requests of wallets that a reader has; test/scenarios/custody sends such"],
  ["docs/operations.md", "sh", "the build is run by npm run test:image, store copy by the guide to backups"],
  ["docs/performance.md", "sh", "the benches; npm run test:all runs their quick form"],
  ["docs/reference.md", "", "an error and a type of EIP-712, which scenarios have"],
  ["docs/signers.md", "json", "configurations of a reader's keys; test/hosts/config decodes such"],
  ["docs/signers/aws-kms.md", "sh", "needs an account at AWS"],
  ["docs/signers/aws-kms.md", "json", "names keys of an account at AWS"],
  ["docs/signers/azure-kv.md", "sh", "needs an account at Azure"],
  ["docs/signers/azure-kv.md", "json", "names keys of an account at Azure"],
  ["docs/signers/fireblocks.md", "sh", "asks for a certificate of an account at Fireblocks"],
  ["docs/signers/fireblocks.md", "json", "names keys of an account at Fireblocks"],
  ["docs/signers/gcp-kms.md", "sh", "needs an account at Google"],
  ["docs/signers/gcp-kms.md", "json", "names keys of an account at Google"],
  ["docs/watches.md", "json", "a message; test/scenarios/http/watches.test.ts receives such"]
]

const lines = (text: string): ReadonlyArray<string> =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line !== "")

const stands = ({ page, text }: Snippets.Snippet): boolean => {
  const files = programs[page]?.split(" ") ?? []
  return files.some((file) => {
    const there = new Set(lines(read(file)))
    return lines(text).every((line) => there.has(line))
  })
}

const isListed = ({ heading, language, page }: Snippets.Snippet): boolean =>
  shown.some(
    ([where, under, kind]) => where === page && kind === language && (under === "*" || under === heading)
  )

const all = Snippets.pages.flatMap(Snippets.of)
const isExcepted = ({ language, page }: Snippets.Snippet): boolean =>
  excepted.some(([where, kind]) => where === page && kind === language)

/** The reference: test/hosts/http/openapi.test.ts sends every command, and holds every answer. */
const isReference = ({ page }: Snippets.Snippet): boolean => page.startsWith("docs/reference/")

const isRun = (snippet: Snippets.Snippet): boolean =>
  (followed.has(snippet.page) && snippet.language === "sh") ||
  isReference(snippet) ||
  stands(snippet) ||
  isListed(snippet)

describe("the snippets of README.md and docs/", () => {
  it("snippets are run, or listed with a reason", () => {
    const left = all.filter((snippet) => !isRun(snippet) && !isExcepted(snippet))
    expect(all.length).toBeGreaterThan(200)
    expect(
      left.map(({ heading, language, page, text }) => [page, heading, language, lines(text)[0]])
    ).toEqual([])
  })

  it("listed snippets exist, and the file that runs each names its page", () => {
    // Two files run every page, and need no page's name.
    const named = shown.filter(([, , , by]) => ![".ci/run", "test/hosts/cli/Program.test.ts"].includes(by))
    expect(named.filter(([page, , , by]) => !read(by).includes(page.split("/").at(-1) ?? ""))).toEqual([])
    expect(
      shown.filter(
        ([page, under, kind]) =>
          !all.some(
            (one) => one.page === page && one.language === kind && (under === "*" || under === one.heading)
          )
      )
    ).toEqual([])
    const needless = excepted.filter(
      ([page, kind]) => !all.some((one) => one.page === page && one.language === kind && !isRun(one))
    )
    expect(needless).toEqual([])
  })
})
