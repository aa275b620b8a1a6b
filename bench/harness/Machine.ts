import { execFileSync } from "node:child_process"
import { readFileSync } from "node:fs"
import { cpus, loadavg, release, totalmem } from "node:os"
import { root } from "../../test/support/process/Program.js"

const version = (command: string, ...args: ReadonlyArray<string>): string => {
  try {
    return execFileSync(command, args, { encoding: "utf8", cwd: root }).split("\n")[0]?.trim() ?? "?"
  } catch {
    return "?"
  }
}

/** Load averages of 1 and 5 minutes. */
export const load = (): string =>
  loadavg()
    .slice(0, 2)
    .map((value) => value.toFixed(2))
    .join(" / ")

/** Whether the machine is too busy to measure; reported before a run. */
export const busy = (): boolean => (loadavg()[0] ?? 0) > 0.3 * cpus().length

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>
  readonly devDependencies: Readonly<Record<string, string>>
}

/** Machine and versions, as lines of Markdown. */
export const describe = (peers: Readonly<Record<string, string>>): ReadonlyArray<string> => {
  const manifest: Manifest = JSON.parse(readFileSync(`${root}package.json`, "utf8"))
  const [cpu] = cpus()
  const own = ["effect", "ethers"].map(
    (name) => `${name} ${manifest.dependencies[name] ?? manifest.devDependencies[name]}`
  )
  return [
    `- ${cpus().length} x ${cpu?.model.trim() ?? "?"}, ${Math.round(totalmem() / 2 ** 30)} GB, ${process.platform} ${release()}`,
    `- Node ${process.versions.node}, V8 ${process.versions.v8}, OpenSSL ${process.versions.openssl}, SQLite ${process.versions.sqlite}`,
    `- castellan at commit ${version("git", "rev-parse", "--short", "HEAD")}, ${own.join(", ")}, anvil ${manifest.devDependencies["@foundry-rs/anvil"]}`,
    `- peers: ${Object.entries(peers)
      .map(([name, exact]) => `${name} ${exact}`)
      .join(", ")}`
  ]
}
