import * as Argument from "effect/cli/Argument"
import * as Effect from "effect/Effect"
import * as OperatorContext from "../support/OperatorContext.js"
import * as Switch from "../support/Switch.js"

export const commands = Switch.commands({
  kind: "chain",
  operand: Argument.String("CHAIN").pipe(Argument.withDescription("a chain id of the configuration")),
  what: "on chain",
  anyWhat: "on a chain",
  example: "137",
  subjectOf: Effect.succeed,
  exists: (text, { config }) => {
    const known = config.networks
      .map(({ chainId }) => chainId.toString())
      .sort((a, b) => Number(a) - Number(b))
    return known.includes(text)
      ? Effect.void
      : Effect.fail(
          `the configuration has no chain ${text}; ${OperatorContext.thereAre(known, "it has none")}`
        )
  }
})

export const notes = [
  "A pause takes effect within a second, on all replicas, without a restart. Reads continue."
]
