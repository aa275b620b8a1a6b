import type { ChildProcess } from "node:child_process"

/** Running children, each with the signal that ends it. */
const running = new Map<ChildProcess, NodeJS.Signals>()

const endAll = (): void => {
  for (const [child, signal] of running) child.kill(signal)
}

const exit = () => process.exit()

/** Vitest ends a worker by SIGTERM, which without a listener emits no `exit`. */
export const exitOnSignal = (): void => {
  if (!process.listeners("SIGTERM").includes(exit)) process.once("SIGTERM", exit)
}

/** Ends the child with this process, where a failed hook or a hung test has not. */
export const endWithProcess = <C extends ChildProcess>(child: C, signal: NodeJS.Signals): C => {
  if (!process.listeners("exit").includes(endAll)) process.once("exit", endAll)
  running.set(child, signal)
  child.once("exit", () => running.delete(child))
  return child
}
