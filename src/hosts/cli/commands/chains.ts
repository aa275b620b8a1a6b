import * as Effect from "effect/Effect"
import * as Command from "../support/Command.js"
import * as Switch from "../support/Switch.js"

export const group: Command.Group = {
  name: "chains",
  about: "pause and resume writes on a chain",
  commands: Switch.commands({
    kind: "chain",
    operand: "CHAIN",
    what: "on chain",
    subjectOf: (text, { config }) => {
      const known = config.networks.map(({ chainId }) => chainId.toString())
      return known.includes(text)
        ? Effect.succeed(text)
        : Effect.fail(`the configuration has no chain ${text}; it has ${known.join(", ")}`)
    }
  }),
  notes: ["Takes effect within a second, on all replicas, without a restart. Reading goes on."]
}

export const run: Command.Run = Command.run(group)
