import { execFile } from "node:child_process"
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { api } from "../../src/hosts/http/contract/Api.js"
import * as OpenApi from "../../src/hosts/http/docs/OpenApi.js"
import { forGenerators } from "./Document.js"

/** Arguments of OpenAPI Generator for each language. */
const languages = {
  python: ["-g=python", "--package-name=castellan", "--additional-properties=projectName=castellan"],
  go: [
    "-g=go-experimental",
    "--package-name=castellan",
    // The generator's own type of any value holds objects only.
    "--type-mappings=object=interface{}"
  ]
} as const

export type Language = keyof typeof languages

/** Files with placeholders of a repository, or for tests of the generator. */
const ignored = [
  ".gitlab-ci.yml",
  ".travis.yml",
  "README.md",
  "git_push.sh",
  "go.mod",
  "go.sum",
  "test-requirements.txt",
  "test/",
  "tox.ini"
]

const run = promisify(execFile)
const jar = () =>
  createRequire(import.meta.url).resolve("@openapitools/openapi-generator-cli/bin/openapi-generator.jar")

/** Replaces a folder by the SDK of a language. */
export const generate = async (language: Language, to: string): Promise<void> => {
  rmSync(to, { recursive: true, force: true })
  mkdirSync(to, { recursive: true })
  const path = join(to, "openapi.json")
  const document = OpenApi.fromApi(api)
  writeFileSync(path, JSON.stringify(forGenerators(document)))
  writeFileSync(join(to, ".openapi-generator-ignore"), ignored.join("\n"))
  const options = [
    `-i=${path}`,
    `-o=${to}`,
    `-p=packageVersion=${document.info.version}`,
    ...languages[language]
  ]
  await run("java", ["-jar", jar(), "generate", ...options], { maxBuffer: 2 ** 24 })
}

/** `npm run sdk`: writes all SDKs to `.sdk/`. */
if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const language of Object.keys(languages) as ReadonlyArray<Language>)
    await generate(language, fileURLToPath(new URL(`../../.sdk/${language}`, import.meta.url)))
