#!/usr/bin/env node
import * as Effect from "effect/Effect"
import * as Accounts from "./commands/accounts.js"
import * as Audit from "./commands/audit.js"
import * as Chains from "./commands/chains.js"
import * as Configuration from "./commands/config.js"
import * as Keys from "./commands/keys.js"
import * as Signers from "./commands/signers.js"
import type * as Command from "./support/Command.js"
import * as Table from "./support/Table.js"

const commands = new Map<string, { readonly about: string; readonly run: Command.Run }>([
  ["accounts", { about: Accounts.group.about, run: Accounts.run }],
  ["keys", { about: Keys.group.about, run: Keys.run }],
  ["chains", { about: Chains.group.about, run: Chains.run }],
  ["audit", { about: Audit.group.about, run: Audit.run }],
  ["config", { about: Configuration.group.about, run: Configuration.run }],
  [
    "signers",
    { about: "list the keys that sign, create one in an HSM, pause and resume one", run: Signers.run }
  ]
])

const usage = `castellan <command>

${Table.aligned([...commands].map(([name, { about }]) => [`  ${name}`, about]))}

"castellan <command> --help" tells more.`

const [command = "", ...args] = process.argv.slice(2)

const asked = ["help", "--help", ""].includes(command)

/** `npm run castellan -- <command>`: the operator's command line. */
Effect.runPromise(
  Effect.match(
    commands.get(command)?.run(args, process.env) ??
      (asked ? Effect.succeed(usage) : Effect.fail(`there is no command ${command}\n\n${usage}`)),
    {
      onFailure: (text) => ({ code: 1, text }),
      onSuccess: (text) => ({ code: 0, text })
    }
  )
).then(({ code, text }) => {
  const out = code === 0 ? process.stdout : process.stderr
  out.write(`${text}\n`)
  process.exitCode = code
})
