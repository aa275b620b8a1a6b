import { spawn } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"

const config = {
  profile: "production",
  listen: { host: "127.0.0.1", port: 0 },
  database: { path: "served.sqlite" },
  keyPepper: { file: "pepper" },
  accounts: [],
  networks: []
}

/** Starts the service with a configuration file by the installed command, polls its readiness, and stops it. */
export const run = async (folder: string): Promise<{ readonly ok: boolean; readonly said: string }> => {
  writeFileSync(join(folder, "castellan.json"), JSON.stringify(config))
  writeFileSync(join(folder, "pepper"), "a pepper of many bytes\n", { mode: 0o600 })
  const { CASTELLAN_CONFIG, NODE_ENV, ...env } = process.env
  const child = spawn("node_modules/.bin/castellan", ["serve", "--config", "castellan.json"], {
    cwd: folder,
    env,
    stdio: ["ignore", "pipe", "pipe"]
  })
  let said = ""
  const ended = new Promise<number | null>((resolve) => child.once("close", resolve))
  const listening = new Promise<string>((resolve) => {
    const hear = (chunk: Buffer) => {
      said += chunk.toString()
      const url = /"message":"listening".*?"url":"([^"]+)"/.exec(said)?.[1]
      if (url !== undefined) resolve(url)
    }
    child.stdout.on("data", hear)
    child.stderr.on("data", hear)
  })
  const url = await Promise.race([listening, ended])
  if (typeof url !== "string") return { ok: false, said }
  const ready = await fetch(`${url}/health/ready`)
  child.kill("SIGTERM")
  const code = await ended
  return { ok: ready.status === 200 && code === 0, said: `${ready.status}, exit code ${code}\n${said}` }
}
