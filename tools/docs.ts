import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname } from "node:path"
import { fileURLToPath } from "node:url"
import * as ConfigSchema from "../src/hosts/config/ConfigSchema.js"
import { api } from "../src/hosts/http/contract/Api.js"
import * as Markdown from "../src/hosts/http/docs/Markdown.js"
import * as OpenApi from "../src/hosts/http/docs/OpenApi.js"
import * as Reference from "../src/hosts/http/docs/Reference.js"
import * as Licences from "./Licences.js"
import * as PublicApi from "./PublicApi.js"

const root = new URL("../", import.meta.url)

/**
 * The exchanges of `docs/examples/<endpoint>.json` by the endpoint's path. Live tests write and check them
 * (`test/support/http/Examples.ts`); the reference shows them.
 */
export const exchanges = (): ReadonlyMap<string, Reference.Exchange> => {
  const folder = new URL("docs/examples/", root)
  return new Map(
    readdirSync(folder)
      .sort()
      .map((file) => [
        `/${file.replace(/\.json$/, "")}`,
        JSON.parse(readFileSync(new URL(file, folder), "utf8"))
      ])
  )
}

/** Once: the compiler reads the whole source for it. */
let publicApi: string | undefined

/** The generated pages of the documentation, by their path in the repository. */
export const pages = (): Readonly<Record<string, string>> => {
  const source = Reference.fromDocument(OpenApi.fromApi(api), exchanges())
  publicApi ??= PublicApi.page(PublicApi.entries())
  return {
    "docs/config.schema.json": `${ConfigSchema.text}\n`,
    "docs/licences.md": Licences.page(
      JSON.parse(readFileSync(new URL("package-lock.json", root), "utf8")).packages
    ),
    "docs/errors.md": Markdown.errors(source),
    "docs/public-api.md": publicApi,
    "docs/reference.md": Markdown.reference(source)
  }
}

/** The pages whose file differs from what the contract and the catalogue say now. */
export const stale = (): ReadonlyArray<string> =>
  Object.entries(pages()).flatMap(([path, text]) => (read(path) === text ? [] : [path]))

const read = (path: string): string | null => {
  try {
    return readFileSync(new URL(path, root), "utf8")
  } catch {
    return null
  }
}

/** `npm run docs` writes the pages. */
if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const [path, text] of Object.entries(pages())) {
    const file = fileURLToPath(new URL(path, root))
    mkdirSync(dirname(file), { recursive: true })
    writeFileSync(file, text)
    process.stdout.write(`${path}\n`)
  }
