import { spawn } from "node:child_process"
import * as NpmShell from "../src/hosts/node/NpmShell.js"
import * as Bundle from "../test/support/process/Bundle.js"

/** `npm run dev`: runs `castellan dev` from the current sources, bundled once, which halves the start of node. */

const castellan = await Bundle.of("src/hosts/cli/castellan.ts")
const child = spawn(process.execPath, [castellan, "dev", ...process.argv.slice(2)], { stdio: "inherit" })
// A terminal signals both processes; this one ends after the other.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
  process.on(signal, () => {
    if (!process.stdin.isTTY) child.kill(signal)
  })
NpmShell.onEnd(/^node --import tsx tools\/dev\.ts(?: |$)/, () => child.kill("SIGTERM"))
child.once("exit", (code, signal) => process.exit(code ?? (signal === null ? 1 : 128)))
