/**
 * npm (`npx`, `npm start`) starts a shell, which starts this process. SIGTERM npm passes to the shell, and some shells die
 * of it and pass nothing on: the service would go on alone, with its database locked. A shell that has nothing to do but
 * to wait for this process ends before it of such a signal only, so its end is taken for the signal. The end of any other
 * parent says nothing, nor does that of standard input: containers and service managers have neither.
 */

const lookMillis = 250

/** Whether npm's shell waits for one program, and for nothing else. */
const isAlone = (script: string, program: RegExp): boolean => program.test(script) && !/[;&|]/.test(script)

/** Calls back once npm's shell is gone; never where npm has not started the program, as a command of its own. */
export const onEnd = (program: RegExp, callback: () => void): void => {
  if (!isAlone(process.env.npm_lifecycle_script ?? "", program)) return
  const shell = process.ppid
  const timer = setInterval(() => {
    if (process.ppid === shell) return
    clearInterval(timer)
    callback()
  }, lookMillis)
  timer.unref()
}

/** castellan as npm's scripts and `npx` name it. */
export const castellan =
  /^(?:node (?:--import tsx )?)?["']?(?:[^\s"']*\/)?castellan(?:\.js|\.ts)?["']?(?: |$)/
