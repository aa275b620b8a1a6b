import { spawn } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { root } from "../../test/support/process/Program.js"
import * as Castellan from "../harness/Castellan.js"
import { type Claim, ensure } from "../harness/Claim.js"
import { closedLoop } from "../harness/Client.js"
import type { Context } from "../harness/Context.js"
import * as Processes from "../harness/Processes.js"
import * as Rivals from "../harness/Rivals.js"
import { figure, median, ratio } from "../harness/Stats.js"
import * as Wallets from "../harness/Wallets.js"
import * as World from "../harness/World.js"

/** Time from a process's start until it is ready, and its memory. */

const callers = 40

/** Time limit of the ops; the ops reached by then are reported. */
const opsMillis = 400_000

const dev = async (context: Context): Promise<number> => {
  const folder = mkdtempSync(join(tmpdir(), "castellan-bench-dev-"))
  context.defer(() => rmSync(folder, { recursive: true, force: true }))
  const { scripts }: { readonly scripts: Readonly<Record<string, string>> } = JSON.parse(
    readFileSync(join(root, "package.json"), "utf8")
  )
  const file = /^node --import tsx (\S+)$/.exec(scripts.dev ?? "")?.[1] ?? ""
  ensure(file !== "", `npm run dev is ${scripts.dev}, not a program of tsx`)
  const began = performance.now()
  // Like `npm run dev`, in a separate folder, where it writes its address.
  const child = spawn(
    join(root, "node_modules/.bin/tsx"),
    [join(root, file), "--port", "0", "--rpc-port", "0"],
    {
      cwd: folder,
      stdio: ["ignore", "pipe", "inherit"]
    }
  )
  Processes.tie(child)
  context.defer(() => Processes.end(child, "SIGTERM"))
  await new Promise<void>((resolve, reject) => {
    let said = ""
    child.stdout.on("data", (chunk: Buffer) => {
      said += chunk.toString()
      if (/^The service listens at/m.test(said)) resolve()
    })
    child.once("exit", (code) => reject(new Error(`npm run dev ended with ${code}: ${said.slice(-1_000)}`)))
  })
  const millis = performance.now() - began
  await Processes.end(child, "SIGTERM")
  return millis
}

export const claim: Claim = {
  name: "start",
  title: "Start and memory",
  boundSeconds: 600,
  run: async (context) => {
    const world = await World.start(context)
    const readies: Array<number> = []
    for (let n = 0; n < context.size(4, 1); n++) {
      const one = await Castellan.start(context, world, { accounts: 1 })
      readies.push(one.readyMillis)
      await one.stop()
    }
    const devs: Array<number> = []
    for (let n = 0; n < context.size(3, 1); n++) devs.push(await dev(context))

    const castellan = await Castellan.start(context, world, { accounts: 80 })
    await new Promise((resolve) => setTimeout(resolve, context.size(3_000, 0)))
    const idle = Processes.residentMb(castellan.pid)
    const salts = Array.from({ length: callers }, (_, n) => `memory ${n}`)
    await Wallets.create(world, castellan, salts)
    const to = Wallets.recipient()
    const [most, steps] = [context.size(10_000, 40), context.size(5, 1)]
    const memory: Array<{ readonly ops: number; readonly mb: number }> = []
    const until = performance.now() + opsMillis
    let done = 0
    for (let step = 0; step < steps && performance.now() < until; step++) {
      const options = { callers, millis: until - performance.now(), most: most / steps }
      const load = await closedLoop(options, async (caller) => {
        await Wallets.execute(world, castellan, [salts[caller] ?? ""], to)
      })
      done += load.done
      memory.push({ ops: done, mb: Processes.residentMb(castellan.pid) })
    }
    ensure((await world.balance(to)) === done, "not every transfer arrived once")
    await castellan.stop()

    const alto = context.peers ? await altoFigures(context) : null
    const after = memory.at(-1)?.mb ?? 0
    const ready = median(readies)
    return {
      rows: [
        {
          what: "start to ready, built package",
          castellan: `${figure(ready)} ms`,
          against: alto === null ? "not measured" : `alto ${figure(alto.readyMillis)} ms`,
          ratio: alto === null ? "-" : ratio(ready / alto.readyMillis),
          demand: "under 1,000 ms",
          met: ready < 1_000
        },
        {
          what: "`npm run dev` until it is ready, chain and suite included",
          castellan: `${figure(median(devs))} ms`,
          against: "-",
          ratio: "-",
          demand: "at most 3,000 ms",
          met: median(devs) <= 3_000
        },
        {
          what: "resident memory, idle",
          castellan: `${figure(idle)} MB`,
          against: alto === null ? "not measured" : `alto ${figure(alto.idle)} MB`,
          ratio: alto === null ? "-" : ratio(idle / alto.idle),
          demand: "under 120 MB",
          met: idle < 120
        },
        {
          what: `resident memory after ${done.toLocaleString("en-US")} ops`,
          castellan: memory
            .map(({ mb, ops }) => `${ops.toLocaleString("en-US")}: ${figure(mb)} MB`)
            .join(", "),
          against: alto === null ? "not measured" : `alto after ${alto.ops} ops ${figure(alto.after)} MB`,
          ratio: alto === null ? "-" : ratio(after / alto.after),
          demand: "at most 200 MB",
          met: after <= 200
        }
      ],
      notes: [
        "Medians. Ready is the first 200 of `GET /health/ready`, for alto its first answer; `npm run dev` has said where it listens. Ops are ERC-20 transfers by 40 callers."
      ],
      raw: { readies, devs, idle, memory, alto }
    }
  }
}

const altoFigures = async (context: Context) => {
  const alto = await Rivals.alto(context, callers)
  const idle = Processes.residentMb(alto.pid)
  const { ops } = await alto.run({ callers, millis: 20_000 })
  return { readyMillis: alto.readyMillis, idle, ops, after: Processes.residentMb(alto.pid) }
}
