#!/usr/bin/env node
import * as Launch from "../node/Launch.js"

/** `castellan <command>`: the operator's command line. What runs on is bounded as the service's own process is. */
Launch.check()
if (["serve", "dev"].includes(process.argv[2] ?? "")) Launch.bound()
await import("./Terminal.js")
