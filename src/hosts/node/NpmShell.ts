/**
 * npm (`npx`, `npm start`) starts a shell, which starts this process. npm passes SIGTERM to the shell, and some shells die
 * of it without passing it on: the service would keep running, with its database locked. A shell that only waits for this
 * process ends earlier only by such a signal, so its end counts as the signal. The end of another parent means nothing, nor
 * does the end of standard input: containers and service managers have neither.
 */

const pollMillis = 250

/** Whether npm's shell runs only this program. */
const isAlone = (script: string, program: RegExp): boolean => program.test(script) && !/[;&|]/.test(script)

/** Calls back once npm's shell is gone; never when npm did not start the program as a single command. */
export const onEnd = (program: RegExp, callback: () => void): void => {
  if (!isAlone(process.env.npm_lifecycle_script ?? "", program)) return
  const shell = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === shell) return
    clearInterval(timer)
    callback()
  }, pollMillis)
  timer.unref()
}

/** castellan in npm scripts and `npx`. */
export const castellan =
  /^(?:node (?:--import tsx )?)?["']?(?:[^\s"']*\/)?castellan(?:\.js|\.ts)?["']?(?: |$)/
