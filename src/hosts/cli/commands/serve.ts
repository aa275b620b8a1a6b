import * as Command from "effect/cli/Command"
import { help, json, Operator, optional, report } from "../support/Operator.js"

export const commands = [
  Command.make("serve", {
    config: optional("config", "FILE", "the configuration; default: the file that CASTELLAN_CONFIG names"),
    json
  }).pipe(
    help(
      "Runs the service in this process until a signal stops it. Logs are JSON lines on standard output.",
      "",
      "--config castellan.json"
    ),
    report(function* ({ config }) {
      const { serve } = yield* Operator
      return yield* serve(config)
    })
  )
]

export const notes = [
  "Exit codes: 0 after a signal, 1 when the service refuses to start or crashes (the reason is on standard error), 130 after a second signal.",
  "SIGTERM stops it gracefully: requests under way are answered within limits.drainMillis.",
  "npx is another process, which ends before the service: to stop the service by its pid, start node_modules/.bin/castellan."
]

export const environment = ["CASTELLAN_CONFIG names the configuration file, unless --config does."]
