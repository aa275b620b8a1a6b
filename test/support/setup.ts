import { afterEach } from "vitest"
import * as Accelerated from "../../src/domain/primitives/Accelerated.js"
import * as LeftBehind from "./LeftBehind.js"

LeftBehind.undoAll()
// A service that an earlier file of this process has started has loaded faster cryptography into it.
Accelerated.use(Accelerated.none)

const most = 2_000

/**
 * A failure of Effect without a stack of its own has its whole message in one line, and a long one costs Vitest minutes:
 * it takes the line for a place in a browser's stack, with a regular expression that tries every way to read it.
 */
afterEach(({ task }) => {
  for (const error of task.result?.errors ?? []) {
    if (!/^\s*at .*:\d+/m.test(error.stack ?? "")) error.stack = ""
    if (error.message.length > most) error.message = `${error.message.slice(0, most)}…`
  }
})
