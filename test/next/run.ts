import { spawn } from "node:child_process"
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import { computeAddress } from "ethers"
import * as Wiring from "../../src/hosts/Wiring.js"
import * as Installed from "../package/Installed.js"
import * as Port from "../support/process/Port.js"

/** `npm run test:next`: the route of examples/next in a Next app; see README.md in this folder. */

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url))
const next = here("app/node_modules/next/dist/bin/next")

const fact = (name: string, holds: boolean, seen: unknown = "") => {
  if (!holds) throw new Error(`not so: ${name} ${JSON.stringify(seen)}`)
  console.log(`ok  ${name}`)
}

const privateKey = `0x${"7e".repeat(32)}`
const pepper = "of the app of Next, and of nothing else"
const { hash, key } = Effect.runSync(Wiring.issueKey(Redacted.make(pepper)))

const castellan = {
  profile: "production",
  allowPrivateKeys: true,
  listen: { host: "127.0.0.1", port: 0 },
  database: { path: "castellan.sqlite" },
  keyPepper: { file: "pepper" },
  accounts: [{ id: "acme", name: "Acme", tier: "pro", keys: [{ hash }] }],
  providers: [{ kind: "private-key", name: "vault", keys: [{ name: "one", privateKey: { file: "one" } }] }],
  signers: [{ accounts: ["acme"], clientId: "treasury", versionId: "1", provider: "vault", key: "one" }],
  networks: []
}

const compilerOptions = {
  strict: true,
  module: "esnext",
  moduleResolution: "bundler",
  target: "es2022",
  lib: ["es2023", "dom"],
  types: ["node"],
  skipLibCheck: true
}

const files = {
  "app/layout.jsx": 'export default ({ children }) => <html lang="en"><body>{children}</body></html>\n',
  "app/page.jsx": "export default () => <p>the host app</p>\n",
  "tsconfig.json": JSON.stringify({ compilerOptions }),
  "castellan.json": JSON.stringify(castellan),
  pepper: `${pepper}\n`,
  one: `${privateKey}\n`
}

/** In an ignored folder of the repository: Node finds castellan's packages above it. */
const ignored = here("app/.castellan")
mkdirSync(ignored, { recursive: true })
const folder = mkdtempSync(join(ignored, "app-"))
const route = join(folder, "app/wallets/[[...path]]")

const start = (port: number) => {
  const { CASTELLAN_CONFIG, NODE_ENV, ...env } = process.env
  const child = spawn(process.execPath, [next, "start", "--hostname", "127.0.0.1", "--port", String(port)], {
    cwd: folder,
    stdio: ["ignore", "pipe", "pipe"],
    env: {
      ...env,
      NEXT_TELEMETRY_DISABLED: "1",
      NEXT_MANUAL_SIG_HANDLE: "true",
      CASTELLAN_CONFIG: join(folder, "castellan.json")
    }
  })
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve))
  let said = ""
  const isUp = new Promise<void>((resolve, reject) => {
    const read = (chunk: Buffer) => {
      said += String(chunk)
      if (said.includes("Ready in")) resolve()
    }
    child.stdout.on("data", read)
    child.stderr.on("data", read)
    child.once("close", () => reject(new Error(said)))
  })
  return { child, ended, isUp, said: () => said }
}

const journey = async (url: string) => {
  const ask = async (method: string, path: string, body?: unknown) => {
    const answer = await fetch(`${url}/wallets${path}`, {
      method,
      headers: { "x-api-key": Redacted.value(key), "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) })
    })
    const text = await answer.text()
    return { status: answer.status, body: text.startsWith("{") ? JSON.parse(text) : text }
  }
  const page = await fetch(url)
  fact("the app serves its own pages", (await page.text()).includes("the host app"))
  const ready = await ask("GET", "/health/ready")
  fact("the service is ready below /wallets", ready.status === 200, ready)
  const signer = await ask("POST", "/getSigner", { signer: { clientId: "treasury", versionId: "1" } })
  fact("a POST reaches the service", signer.body.address === computeAddress(privateKey), signer)
  for (const method of ["GET", "PATCH", "DELETE"]) {
    const none = await ask(method, "/webhooks/none", method === "PATCH" ? { state: "paused" } : undefined)
    fact(`a ${method} too`, String(none.body.code).includes("webhook"), none)
  }
  const unknown = await ask("POST", "/predict", { account: [] })
  fact("request bodies reach the service unread", unknown.body.code === "unknown_field", unknown)
  const document = await ask("GET", "/openapi.json")
  fact("its document names the path", document.body.servers?.[0]?.url === "/wallets", document.body.servers)
}

try {
  Installed.install(folder)
  mkdirSync(route, { recursive: true })
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text, { mode: 0o600 })
  copyFileSync(here("../../examples/next/route.ts"), join(route, "route.ts"))
  copyFileSync(here("../../examples/next/next.config.mjs"), join(folder, "next.config.mjs"))
  const built = Installed.run(process.execPath, [next, "build"], folder)
  fact("next build accepts the route and its types", built.ok, built.said)
  const port = await Port.free()
  const app = start(port)
  try {
    await app.isUp
    await journey(`http://127.0.0.1:${port}`)
    app.child.kill("SIGTERM")
    const code = await app.ended
    fact("SIGTERM ends it in order", code === 0, app.said())
    fact("and the service has closed its database", !existsSync(join(folder, "castellan.sqlite-wal")))
  } finally {
    app.child.kill("SIGKILL")
    await app.ended
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
