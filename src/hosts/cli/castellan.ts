#!/usr/bin/env node
import * as Launch from "../node/Launch.js"

/** `castellan <command>`: the operator's command line. Long-running commands get the memory bound of the service's process. */
Launch.check()
if (["serve", "dev"].includes(process.argv[2] ?? "")) Launch.bound()
await import("./Terminal.js")
