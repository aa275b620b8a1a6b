import { execFile } from "node:child_process"
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
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
  ],
  java: [
    "-g=java",
    "--library=native",
    "--type-mappings=AnyType=Object",
    "--additional-properties=invokerPackage=castellan,apiPackage=castellan.api,modelPackage=castellan.model"
  ]
} as const

export type Language = keyof typeof languages

/** Files with placeholders of a repository, for tests of the generator, or that name libraries of its time. */
const ignored = [
  ".gitlab-ci.yml",
  ".travis.yml",
  "AndroidManifest.xml",
  "README.md",
  "build.gradle",
  "build.sbt",
  "git_push.sh",
  "go.mod",
  "go.sum",
  "gradle*",
  "gradle/",
  "pom.xml",
  "settings.gradle",
  "test-requirements.txt",
  "test/",
  "tox.ini"
]

const run = promisify(execFile)

/** The generator's file. It contains the libraries that the SDK for Java needs, too. */
export const jar = () =>
  createRequire(import.meta.url).resolve("@openapitools/openapi-generator-cli/bin/openapi-generator.jar")

/** Java's references may be null without a mark, and the generator writes a default object as an array. */
const forJava = (name: string, value: unknown): unknown =>
  (name === "nullable" && value === true) || (name === "default" && typeof value === "object")
    ? undefined
    : value

/** Removes a library whose types no model has without `nullable`. */
const withoutNullable = (to: string) => {
  const path = join(to, "src/main/java/castellan/ApiClient.java")
  writeFileSync(path, readFileSync(path, "utf8").replace(/^.*(?:JsonNullableModule|\bjnm\b).*\n/gm, ""))
}

/** Replaces a folder by the SDK of a language. */
export const generate = async (language: Language, to: string): Promise<void> => {
  rmSync(to, { recursive: true, force: true })
  mkdirSync(to, { recursive: true })
  const path = join(to, "openapi.json")
  const document = OpenApi.fromApi(api)
  writeFileSync(path, JSON.stringify(forGenerators(document), language === "java" ? forJava : undefined))
  writeFileSync(join(to, ".openapi-generator-ignore"), ignored.join("\n"))
  const options = [
    `-i=${path}`,
    `-o=${to}`,
    `-p=packageVersion=${document.info.version}`,
    ...languages[language]
  ]
  await run("java", ["-jar", jar(), "generate", ...options], { maxBuffer: 2 ** 24 })
  if (language === "java") withoutNullable(to)
}

/** `npm run sdk`: writes all SDKs to `.sdk/`. */
if (process.argv[1] === fileURLToPath(import.meta.url))
  for (const language of Object.keys(languages) as ReadonlyArray<Language>)
    await generate(language, fileURLToPath(new URL(`../../.sdk/${language}`, import.meta.url)))
