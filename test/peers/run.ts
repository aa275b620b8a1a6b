import { spawn } from "node:child_process"
import { fileURLToPath } from "node:url"
import { entryPoints } from "../../src/hosts/cli/deploy/EntryPoints.js"
import * as DevService from "../support/http/DevService.js"
import * as Port from "../support/process/Port.js"

/** `npm run test:peers`: the service over HTTP, with a real alto between it and anvil; see README.md in this folder. */

const here = fileURLToPath(new URL(".", import.meta.url))
const patienceMillis = 60_000

const executor = DevService.anvilKey(8)

const facts: Array<string> = []
const fact = (name: string, holds: boolean, seen: unknown = "") => {
  if (!holds) throw new Error(`not so: ${name} ${JSON.stringify(seen)}`)
  facts.push(name)
  console.log(`ok  ${name}`)
}

const startAlto = (port: number, rpc: string) => {
  const child = spawn(
    process.execPath,
    [
      "--import",
      `${here}loopback.mjs`,
      `${here}node_modules/@pimlico/alto/esm/cli/alto.js`,
      "run",
      ...["--entrypoints", Object.values(entryPoints).join(",")],
      ...["--executor-private-keys", executor.privateKey],
      ...["--utility-private-key", DevService.anvilKey(9).privateKey],
      ...["--rpc-url", rpc],
      ...["--port", String(port)],
      // Wallets behind a beacon read the beacon's storage while they validate: see docs/operations.md.
      ...["--safe-mode", "false"],
      ...["--log-level", "warn"]
    ],
    { stdio: ["ignore", "pipe", "pipe"], cwd: here }
  )
  let said = ""
  for (const stream of [child.stdout, child.stderr]) stream.on("data", (chunk) => (said += String(chunk)))
  const ended = new Promise<void>((resolve) => child.once("close", () => resolve()))
  return {
    said: () => said,
    stop: async () => {
      child.kill("SIGKILL")
      await ended
    }
  }
}

const asked = async (url: string, method: string): Promise<unknown> => {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [] })
  })
  return JSON.parse(await answer.text()).result
}

/** Until it reports its EntryPoints. */
const ready = async (url: string): Promise<unknown> => {
  const until = Date.now() + patienceMillis
  for (;;) {
    const found = await asked(url, "eth_supportedEntryPoints").catch(() => undefined)
    if (found !== undefined) return found
    if (Date.now() > until) throw new Error("alto does not answer")
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
}

const port = await Port.free()
const url = `http://127.0.0.1:${port}`
const service = await DevService.start({ network: { bundler: { url }, receiptTimeoutMillis: 60_000 } })
const alto = startAlto(port, service.info.rpc)
try {
  fact("alto serves the EntryPoints", JSON.stringify(await ready(url)).includes(entryPoints["v0.7"]))
  const { provider, token } = service
  for (const version of ["v0.6", "v0.7", "v0.8"] as const) {
    const salt = `peers ${version}`
    const settings = { ...service.info.settings, entryPoint: service.info.entryPoints[version] }
    const [wallet = ""] = await service.predict(salt)
    await service.fund(wallet)
    const accounts = [{ salt, walletCustody: 1 }]
    const creating = version === "v0.7" ? "v0.6" : version
    if (creating !== version) {
      // alto's simulation of this version creates wallets by its own SenderCreator, which the factory does not know.
      // The refused op could still land while it is valid.
      const refusedSalt = `${salt}, refused`
      const [funded = ""] = await service.predict(refusedSalt)
      await service.fund(funded)
      const refusal = await service.refused(422, "/create", {
        accounts: [{ salt: refusedSalt, walletCustody: 1 }],
        settings
      })
      fact(
        `${version}: alto's refusal of a creation is reported`,
        refusal.code === "outcome_unknown" && JSON.stringify(refusal.details).includes("AA24"),
        refusal
      )
    }
    const created = await service.ok<DevService.CreateResult>("/create", {
      accounts,
      settings: { ...settings, entryPoint: service.info.entryPoints[creating] }
    })
    fact(`${version}: a wallet is created at ${creating}`, created.status === 1, created)
    const bundle = await provider.getTransaction(created.txHash)
    fact(`${version}: alto's EOA submitted it`, bundle?.from === executor.address, bundle?.from)
    await (await token.getFunction("mint")(wallet, 100n)).wait()
    const to = `0x${"be".repeat(19)}${version.at(-1)}0`
    const transfer = (amount: string) => ({
      salt,
      walletCustody: 1,
      to: service.info.token,
      funcSignature: "transfer(address,uint256)",
      funcParams: [to, amount]
    })
    const executed = await service.ok<DevService.TransactionResult>("/execute", {
      operations: [transfer("3"), transfer("4")],
      settings
    })
    fact(`${version}: two operations of one request are executed`, executed.status === 1, executed)
    const answers = await Promise.all(
      ["5", "6", "7"].map((amount) =>
        service.ok<DevService.TransactionResult>("/execute", { operations: [transfer(amount)], settings })
      )
    )
    fact(
      `${version}: three concurrent requests are executed`,
      answers.every(({ status }) => status === 1),
      answers
    )
    const held = await token.getFunction("balanceOf")(to)
    fact(`${version}: each once`, held === 25n, String(held))
  }
  console.log(`${facts.length} facts hold with alto`)
} catch (error) {
  console.error(error)
  console.error(alto.said().slice(-8_000))
  console.error(service.log().slice(-4_000))
  process.exitCode = 1
} finally {
  await alto.stop()
  await service.stop()
}
