import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import * as Effect from "effect/Effect"
import * as Program from "../src/hosts/cli/Program.js"
import { jsonSchema } from "../src/hosts/config/ConfigFile.js"
import * as CommandLine from "../test/support/process/CommandLine.js"
import * as BrowserModule from "./BrowserModule.js"
import * as Llms from "./llms.js"
import * as PublicApi from "./PublicApi.js"
import * as Manual from "./reference/CommandLine.js"
import * as Markdown from "./reference/Markdown.js"
import * as OpenApiDocument from "./reference/OpenApiDocument.js"
import * as Reference from "./reference/Reference.js"
import * as Runbooks from "./reference/Runbooks.js"

const root = new URL("../", import.meta.url)

/**
 * Exchanges in `docs/examples/<endpoint>.json`, by endpoint name. Live tests write and check them
 * (`test/support/http/Examples.ts`); the reference shows them.
 */
export const exchanges = (): ReadonlyMap<string, Reference.Exchange> => {
  const folder = new URL("docs/examples/", root)
  return new Map(
    readdirSync(folder)
      .sort()
      .map((file) => [file.replace(/\.json$/, ""), JSON.parse(readFileSync(new URL(file, folder), "utf8"))])
  )
}

/** Cached: the compiler reads the whole source for it. */
let publicApi: string | undefined

/** `--help` of every group and command. */
const manual = await Effect.runPromise(
  Effect.gen(function* () {
    const found = []
    for (const words of yield* Program.manual)
      found.push({ words, text: yield* CommandLine.run([...words, "--help"], {}) })
    return found
  })
)

/** The generated pages, by path in the repository. */
export const pages = (): Readonly<Record<string, string>> => {
  const source = Reference.fromDocument(OpenApiDocument.document, exchanges())
  publicApi ??= PublicApi.page(PublicApi.entries())
  return {
    ...Manual.pages(manual),
    "docs/config.schema.json": `${jsonSchema()}\n`,
    "src/hosts/http/playground/passkeys.js": BrowserModule.page(new URL("src/client/Passkeys.ts", root)),
    "docs/errors.md": Markdown.errors(source),
    "docs/llms.txt": Llms.page(),
    "docs/public-api.md": publicApi,
    "docs/runbooks.md": Runbooks.page(),
    "docs/alerts.yaml": Runbooks.alerts(),
    ...Markdown.reference(source)
  }
}

/** Pages whose files differ from the contract and the catalogue. */
export const stale = (): ReadonlyArray<string> =>
  Object.entries(pages()).flatMap(([path, text]) => (read(path) === text ? [] : [path]))

const read = (path: string): string | null => {
  try {
    return readFileSync(new URL(path, root), "utf8")
  } catch {
    return null
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const [path, text] of Object.entries(pages())) {
    const file = fileURLToPath(new URL(path, root))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    process.stdout.write(`${path}\n`)
  }
