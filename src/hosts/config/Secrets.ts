import { readFileSync } from "node:fs"
import { resolve } from "node:path"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import type { Problem, Secret } from "./FileFields.js"
import * as SchemaProblems from "./SchemaProblems.js"

/** Sources of secrets. */
export interface Sources {
  readonly env: Readonly<Record<string, string | undefined>>
  /** Folder of the configuration file, the base of relative paths. */
  readonly folder: string
  /** Whether the configuration file itself may contain secrets. */
  readonly allowInline: boolean
}

/**
 * Keeps a secret out of logs when it stands in place of its name: messages show only plausible variable names and paths,
 * never text that looks like a key, a URL or a document.
 */
const isKeyLike = (text: string): boolean => /^(?:0x)?[0-9a-f]{32,}$/i.test(text)
const isName = (text: string): boolean => /^[A-Za-z_][\w.-]{0,63}$/.test(text) && !isKeyLike(text)
const isPath = (text: string): boolean => !(isKeyLike(text) || text.includes("://") || /[{}"\r\n]/.test(text))

const variableOf = (name: string): string => `the environment variable${isName(name) ? ` ${name}` : ""}`

const hint = (isShown: boolean, field: string, what: string): string =>
  isShown ? "" : `; "${field}" takes a ${what}, never the secret itself`

const readSecretFile = (path: string, shown: string): Result.Result<string, string> =>
  Result.try({
    try: () => readFileSync(path, "utf8"),
    // Keeps only the cause's code: its text repeats the path.
    catch: (cause) =>
      `cannot read the file${shown}${cause instanceof Error && "code" in cause ? ` (${String(cause.code)})` : ""}${hint(shown !== "", "file", "path")}`
  })

const present = (text: string, where: string): Result.Result<Redacted.Redacted<string>, string> => {
  const secret = text.trim()
  return secret === "" ? Result.fail(`${where} is empty`) : Result.succeed(Redacted.make(secret))
}

/** Reads a secret, trimmed (files tend to end in a line break). `Failure` gives the reason. */
export const read = (secret: Secret, sources: Sources): Result.Result<Redacted.Redacted<string>, string> => {
  if (typeof secret === "string")
    return sources.allowInline
      ? present(secret, "the secret")
      : Result.fail(
          'secrets stand in the configuration of a development profile only; use {"env": "NAME"} or {"file": "path"}'
        )
  if ("env" in secret) {
    const value = sources.env[secret.env]
    const variable = variableOf(secret.env)
    return value === undefined
      ? Result.fail(`${variable} is not set${hint(isName(secret.env), "env", "name")}`)
      : present(value, variable)
  }
  const path = resolve(sources.folder, secret.file)
  const shown = isPath(secret.file) ? ` ${path}` : ""
  return Result.flatMap(readSecretFile(path, shown), (text) => present(text, `the file${shown}`))
}

/** Whether a value of the file is a reference to a secret. */
export const isReference = (value: object): value is Exclude<Secret, string> => {
  const [[name, text] = [], ...others] = Object.entries(value)
  return others.length === 0 && (name === "env" || name === "file") && typeof text === "string"
}

/** References of a file without a readable secret, excluding those at or below the given paths. */
export const unreadable = (
  file: unknown,
  sources: Sources,
  except: ReadonlyArray<string>
): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const visit = (value: unknown, path: ReadonlyArray<string | number>): void => {
    if (typeof value !== "object" || value === null || except.includes(SchemaProblems.pathOf(path))) return
    if (Array.isArray(value)) for (const [index, each] of value.entries()) visit(each, [...path, index])
    else if (isReference(value))
      Result.mapError(read(value, sources), (message) =>
        problems.push({ path: SchemaProblems.pathOf(path), message })
      )
    else for (const [name, each] of Object.entries(value)) visit(each, [...path, name])
  }
  visit(file, [])
  return problems
}
