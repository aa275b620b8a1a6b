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
const documents = (path: string) =>
  Yaml.parseAllDocuments(read(path)).map((document) => {
    expect(document.errors).toEqual([])
    return document.toJS()
  })

const manifests = Object.fromEntries(
  documents("kubernetes.yaml").map((manifest) => [manifest.kind, manifest])
)
const pod = manifests.Deployment.spec.template.spec
const [container] = pod.containers
const { secrets, services } = Yaml.parse(read("compose.yaml"))
const unit = read("castellan.service")

const files = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/"file": ?"([^"]+)"/g)].map(([, path = ""]) => path)
const names = (text: string) => files(text).map((path) => path.replace("/run/secrets/", ""))

/** Parses a configuration whose secrets are files of a running container, here in the environment. */
const parsed = (text: string) => {
  const inEnv = text.replaceAll(/"file": ?"\/run\/secrets\/([a-z-]+)"/g, '"env": "$1"')
  const env = {
    DATABASE_URL: "postgres:///castellan?host=/var/run/postgresql&user=castellan",
    "database-url": "postgres://castellan@postgres/castellan",
    "key-pepper": "pepper of the test",
    "admin-token": "token of the test, 32 characters"
  }
  return Result.getOrThrow(Config.fromText(inEnv, "the sample", env, root))
}

const manifestConfig: string = manifests.ConfigMap.data["castellan.json"]

describe("the files of deploy/", () => {
  it("configure a reachable service, each secret once in a file that Compose, Kubernetes and systemd provide", () => {
    const listen = { host: "0.0.0.0", port: 8080 }
    for (const text of [read("castellan.json"), manifestConfig]) expect(parsed(text).listen).toEqual(listen)
    expect(names(read("castellan.json")).sort()).toEqual(Object.keys(secrets).sort())
    for (const name of Object.keys(secrets)) expect(services.castellan.secrets).toContain(name)
    const [, secret] = documents("kubernetes-secret.yaml")
    expect(secret.metadata.name).toBe(pod.volumes[1].secret.secretName)
    expect(names(manifestConfig).sort()).toEqual(Object.keys(secret.stringData).sort())
    // An example that is applied as it is leaves the service without secrets, which it says.
    expect(new Set(Object.values(secret.stringData))).toEqual(new Set([""]))
    const credentials = [...unit.matchAll(/^LoadCredential=([a-z-]+):/gm)].map(([, name]) => name)
    expect(credentials.sort()).toEqual(names(manifestConfig).sort())
  })

  it("build and start the package's entry, as a numeric user that Kubernetes accepts as not root", () => {
    const { scripts, version } = JSON.parse(readFileSync(`${root}package.json`, "utf8"))
    const file = read("Dockerfile")
    for (const [, script = ""] of file.matchAll(/npm run (\S+)/g)) expect(scripts).toHaveProperty(script)
    const [, started = ""] = /^CMD \["node", "dist\/(.*)\.js"\]/m.exec(file) ?? []
    expect(existsSync(`${root}src/${started}.ts`)).toBe(true)
    expect(unit).toContain(`ExecStart=/usr/bin/node dist/${started}.js`)
    const [, user] = /^USER (\d+):\d+$/m.exec(file) ?? []
    expect(Number(user)).toBe(pod.securityContext.runAsUser)
    expect(file).toContain(`ARG VERSION=${version}`)
    expect(Yaml.parse(read("helm/castellan/Chart.yaml"))).toMatchObject({ version, appVersion: version })
  })

  it("give a stopping process more time than its drain takes", () => {
    const drainSeconds = parsed(read("castellan.json")).limits.drainMillis / 1_000
    const [, unitSeconds] = /^TimeoutStopSec=(\d+)$/m.exec(unit) ?? []
    const [, preStop] = container.lifecycle.preStop.exec.command
    for (const seconds of [
      Number.parseInt(services.castellan.stop_grace_period, 10),
      Number(unitSeconds),
      pod.terminationGracePeriodSeconds - Number(preStop)
    ])
      expect(seconds).toBeGreaterThan(drainSeconds + 10)
  })

  it("probe health where the service answers, keep replicas up, and agree on labels and ports", () => {
    const { Deployment, NetworkPolicy, PodDisruptionBudget, Service } = manifests
    const paths = OpenApi.fromApi(api).paths
    for (const probe of [container.startupProbe, container.readinessProbe, container.livenessProbe]) {
      expect(paths).toHaveProperty([probe.httpGet.path])
      expect(probe.httpGet.port).toBe("http")
    }
    const config = JSON.parse(manifestConfig)
    expect(container.ports).toEqual([
      { name: "http", containerPort: config.listen.port },
      { name: "metrics", containerPort: config.admin.port }
    ])
    const { annotations, labels } = Deployment.spec.template.metadata
    expect(annotations["prometheus.io/port"]).toBe(String(config.admin.port))
    for (const selector of [
      Service.spec.selector,
      PodDisruptionBudget.spec.selector.matchLabels,
      NetworkPolicy.spec.podSelector.matchLabels,
      ...pod.topologySpreadConstraints.map(
        (spread: { labelSelector: { matchLabels: unknown } }) => spread.labelSelector.matchLabels
      )
    ])
      expect(selector).toEqual(labels)
    expect(PodDisruptionBudget.spec.maxUnavailable).toBeLessThan(Deployment.spec.replicas)
    const [open, metrics] = NetworkPolicy.spec.ingress
    expect([open.ports, metrics.ports]).toEqual([[{ port: "http" }], [{ port: "metrics" }]])
    expect(metrics.from).toHaveLength(1)
    expect(read("Dockerfile")).toContain(container.readinessProbe.httpGet.path)
    expect(read("Dockerfile")).toContain(`EXPOSE ${config.listen.port} ${config.admin.port}\n`)
  })

  it("meet the restricted Pod Security Standard in Kubernetes, and its counterpart in Compose", () => {
    const [namespace] = documents("kubernetes-secret.yaml")
    expect(namespace.metadata.labels["pod-security.kubernetes.io/enforce"]).toBe("restricted")
    expect(pod).not.toMatchObject({ hostNetwork: true })
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      seccompProfile: { type: "RuntimeDefault" }
    })
    for (const one of pod.containers)
      expect(one.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ["ALL"] }
      })
    const allowed = ["configMap", "secret", "emptyDir", "persistentVolumeClaim", "projected"]
    for (const volume of pod.volumes)
      expect(Object.keys(volume).filter((key) => key !== "name" && !allowed.includes(key))).toEqual([])
    expect([pod.automountServiceAccountToken, manifests.ServiceAccount.automountServiceAccountToken]).toEqual(
      [false, false]
    )
    // The anchor's keys are merged by readers of YAML 1.1, as Compose is.
    for (const service of Object.values(Yaml.parse(read("compose.yaml"), { merge: true }).services))
      expect(service).toMatchObject({
        read_only: true,
        cap_drop: ["ALL"],
        security_opt: ["no-new-privileges:true"]
      })
  })

  it("scrape metrics at the operator's port, with its token and under a name that it allows", () => {
    const [scrape] = Yaml.parse(read("prometheus.yaml")).scrape_configs
    const { admin } = JSON.parse(read("castellan.json"))
    const [target] = scrape.static_configs[0].targets
    expect(target).toBe(`${admin.hosts[0]}:${admin.port}`)
    expect(Object.keys(services)).toContain(admin.hosts[0])
    expect(scrape.authorization.credentials_file).toBe(admin.token.file)
    expect(services.prometheus.secrets).toContain("admin-token")
  })
})
