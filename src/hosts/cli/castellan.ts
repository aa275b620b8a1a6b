import * as Effect from "effect/Effect"
import * as Keys from "./keys.js"

const usage = `castellan <command>

  key    issue an API key

${Keys.usage}`

const [command, ...args] = process.argv.slice(2)

/** `npm run castellan -- <command>`: the operator's command line. */
Effect.runPromise(
  command === "key"
    ? Effect.match(Keys.issue(args, process.env), {
        onFailure: (text) => ({ code: 1, text }),
        onSuccess: (text) => ({ code: 0, text })
      })
    : Effect.succeed({ code: 1, text: usage })
).then(({ code, text }) => {
  const out = code === 0 ? process.stdout : process.stderr
  out.write(`${text}\n`)
  process.exitCode = code
})
