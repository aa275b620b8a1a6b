import { afterEach } from "vitest"
import * as Accelerated from "../../src/domain/primitives/Accelerated.js"
import * as LeftBehind from "./LeftBehind.js"
import * as Children from "./process/Children.js"

Children.exitOnSignal()
LeftBehind.undoAll()
// A service started by an earlier file of this process has loaded faster cryptography.
Accelerated.use(Accelerated.none)

const most = 2_000

/**
 * An Effect failure without its own stack holds its message in one line. Vitest takes a long line for a browser stack
 * frame, and its regular expression backtracks for minutes.
 */
afterEach(({ task }) => {
  for (const error of task.result?.errors ?? []) {
    if (!/^\s*at .*:\d+/m.test(error.stack ?? "")) error.stack = ""
    if (error.message.length > most) error.message = `${error.message.slice(0, most)}…`
  }
})
