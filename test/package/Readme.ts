import { type ChildProcess, spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

/** Commands that run on until they print this text; the others end. */
const lasting: ReadonlyArray<readonly [RegExp, string]> = [
  [/^npx castellan dev\b/, "Ctrl-C stops it"],
  [/^npx hardhat node\b/, "Started HTTP"]
]

/** The commands of the block below this line of docs/install.md. */
const commandsOf = (title: string): ReadonlyArray<string> => {
  const page = readFileSync(fileURLToPath(new URL("../../docs/install.md", import.meta.url)), "utf8")
  const [, after = ""] = page.split(`\n${title}`)
  const [, block = ""] = /```sh\n([\s\S]*?)```/.exec(after) ?? []
  return block
    .trim()
    .split("\n")
    .map((line) => line.replace(/\s+#.*$/, ""))
}

const perform = (
  command: string,
  cwd: string,
  env: NodeJS.ProcessEnv,
  running: Array<ChildProcess>
): Promise<string> =>
  new Promise((resolve, reject) => {
    const sign = lasting.find(([pattern]) => pattern.test(command))?.[1]
    const child = spawn("bash", ["-c", command], {
      cwd,
      env,
      detached: true,
      stdio: ["ignore", "pipe", "pipe"]
    })
    running.push(child)
    let said = ""
    const hear = (chunk: Buffer) => {
      said += chunk.toString()
      if (sign !== undefined && said.includes(sign)) resolve(said)
    }
    child.stdout.on("data", hear)
    child.stderr.on("data", hear)
    child.once("close", (code) =>
      code === 0 && sign === undefined ? resolve(said) : reject(new Error(`${command}\n${said}`))
    )
  })

const end = async (children: ReadonlyArray<ChildProcess>): Promise<void> => {
  for (const child of children) {
    if (child.exitCode !== null || child.pid === undefined) continue
    const closed = new Promise((resolve) => child.once("close", resolve))
    process.kill(-child.pid, "SIGTERM")
    await closed
  }
}

/**
 * Runs the commands of docs/install.md in order, in a folder where the first, which installs, has been carried out. Then
 * runs the command that the last one prints. `replace` exchanges the usual ports for free ones.
 */
export const follow = async (
  title: string,
  cwd: string,
  env: Readonly<Record<string, string>>,
  replace: (command: string) => string = (command) => `${command} --port 0 --rpc-port 0`
): Promise<{ readonly ok: boolean; readonly said: string }> => {
  const { CASTELLAN_CONFIG, NODE_ENV, ...own } = process.env
  const all = { ...own, ...env }
  const running: Array<ChildProcess> = []
  try {
    const [install = "", ...commands] = commandsOf(title)
    if (!install.startsWith("npm install ./castellan-0.1.0.tgz"))
      throw new Error(`not an installation: ${install}`)
    let said = ""
    for (const command of commands) said = await perform(replace(command), cwd, all, running)
    const curl = /^curl .*\/execute -H .*"salt":"first".*$/m.exec(said)?.[0]
    if (curl === undefined) throw new Error(said)
    const answer: unknown = JSON.parse(await perform(curl, cwd, all, running))
    const executed =
      typeof answer === "object" && answer !== null && "status" in answer && answer.status === 1
    return {
      ok: executed && /has minted 1000 tokens in the transaction 0x/.test(said),
      said: JSON.stringify(answer)
    }
  } catch (cause) {
    return { ok: false, said: cause instanceof Error ? cause.message : String(cause) }
  } finally {
    await end(running)
  }
}
