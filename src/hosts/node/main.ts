import * as Launch from "./Launch.js"

/** The service as a process: `node dist/hosts/node/main.js`. */
Launch.check()
Launch.bound()
await import("./Serve.js")
