import * as Effect from "effect/Effect"
import * as Keys from "./keys.js"
import * as Signers from "./signers.js"

const usage = `castellan <command>

  key      issue an API key
  signers  list the keys that sign, create one in an HSM

${Keys.usage}

${Signers.usage}`

const commands = new Map([
  ["key", Keys.issue],
  ["signers", Signers.run]
])

const [command = "", ...args] = process.argv.slice(2)

/** `npm run castellan -- <command>`: the operator's command line. */
Effect.runPromise(
  Effect.match(commands.get(command)?.(args, process.env) ?? Effect.fail(usage), {
    onFailure: (text) => ({ code: 1, text }),
    onSuccess: (text) => ({ code: 0, text })
  })
).then(({ code, text }) => {
  const out = code === 0 ? process.stdout : process.stderr
  out.write(`${text}\n`)
  process.exitCode = code
})
