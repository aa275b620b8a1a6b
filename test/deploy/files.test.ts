import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import * as Yaml from "yaml"
import * as Config from "../../src/hosts/config/Config.js"
import { api } from "../../src/hosts/http/contract/Api.js"
import * as OpenApi from "../../src/hosts/http/docs/OpenApi.js"

const root = fileURLToPath(new URL("../../", import.meta.url))
const read = (path: string) => readFileSync(`${root}deploy/${path}`, "utf8")

/** The sample's secrets stand in files of a running container; here in the environment. */
const configured = () => {
  const text = read("castellan.json").replaceAll(
    /\{ "file": "\/run\/secrets\/([a-z-]+)" \}/g,
    '{ "env": "$1" }'
  )
  const env = {
    "database-url": "postgres://castellan@postgres/castellan",
    "key-pepper": "a pepper that nobody else knows of",
    "redis-url": "redis://redis"
  }
  return { config: Result.getOrThrow(Config.fromText(text, "of the sample", env, root)), env }
}

const drainSeconds = () => configured().config.limits.drainMillis / 1_000

describe("the files of deploy/", () => {
  it("configure a service that others can reach, with all secrets in files that the composition has", () => {
    const { config, env } = configured()
    expect(config.listen).toEqual({ host: "0.0.0.0", port: 8080 })
    const { secrets, services } = Yaml.parse(read("compose.yaml"))
    for (const name of Object.keys(env)) {
      expect(secrets).toHaveProperty(name)
      expect(services.castellan.secrets).toContain(name)
    }
  })

  it("build and start what the package has", () => {
    const { scripts } = JSON.parse(readFileSync(`${root}package.json`, "utf8"))
    const file = read("Dockerfile")
    for (const [, script = ""] of file.matchAll(/npm run (\S+)/g)) expect(scripts).toHaveProperty(script)
    const [, started = ""] = /CMD \["node", "dist\/(.*)\.js"\]/.exec(file) ?? []
    expect(existsSync(`${root}src/${started}.ts`)).toBe(true)
    expect(read("castellan.service")).toContain(`ExecStart=/usr/bin/node dist/${started}.js`)
    expect(file).toMatch(/^USER node$/m)
  })

  it("give a process that stops more time than its drain takes", () => {
    const seconds = (text: string | undefined) => Number(text?.replace(/s$/, ""))
    const { services } = Yaml.parse(read("compose.yaml"))
    const [, , deployment] = Yaml.parseAllDocuments(read("kubernetes.yaml")).map((document) =>
      document.toJS()
    )
    for (const given of [
      seconds(services.castellan.stop_grace_period),
      seconds(/^TimeoutStopSec=(.*)$/m.exec(read("castellan.service"))?.[1]),
      deployment.spec.template.spec.terminationGracePeriodSeconds
    ])
      expect(given).toBeGreaterThan(drainSeconds() + 10)
  })

  it("ask for health where the service answers, keep replicas up, and agree on labels and ports", () => {
    const documents = Yaml.parseAllDocuments(read("kubernetes.yaml"))
    expect(documents.flatMap(({ errors }) => errors)).toEqual([])
    const [service, budget, deployment] = documents.map((document) => document.toJS())
    const paths = OpenApi.fromApi(api).paths
    const [container] = deployment.spec.template.spec.containers
    for (const probe of [container.readinessProbe, container.livenessProbe])
      expect(paths).toHaveProperty([probe.httpGet.path])
    expect(container.ports[0]).toEqual({ name: "http", containerPort: configured().config.listen.port })
    for (const selector of [service.spec.selector, budget.spec.selector.matchLabels])
      expect(deployment.spec.template.metadata.labels).toEqual(selector)
    expect(budget.spec.maxUnavailable).toBeLessThan(deployment.spec.replicas)
    expect(read("compose.yaml")).toContain(container.readinessProbe.httpGet.path)
  })
})
