import { median } from "./Stats.js"

/** A contender's task, possibly asynchronous, as viem's recovery is. */
export type Call = () => unknown

/** CPU time of this process, including its garbage collector, in seconds. */
const cpuSeconds = (): number => {
  const { system, user } = process.cpuUsage()
  return (system + user) / 1e6
}

const round = async (call: Call, seconds: number): Promise<number> => {
  const began = cpuSeconds()
  let calls = 0
  let used = 0
  // Several calls per reading of the clock, which costs a system call.
  for (let many = 1; used < seconds; ) {
    for (let n = 0; n < many; n++) {
      const result = call()
      if (result instanceof Promise) await result
    }
    calls += many
    const before = used
    used = cpuSeconds() - began
    if (used - before < seconds / 50) many *= 2
  }
  return calls / used
}

/** Median calls per CPU second of each contender, in alternating rounds. */
export const perCpuSecond = async <Name extends string>(
  contenders: Readonly<Record<Name, Call>>,
  options: { readonly rounds: number; readonly seconds: number }
): Promise<Readonly<Record<Name, number>>> => {
  const names = Object.keys(contenders) as unknown as ReadonlyArray<Name>
  const rates = new Map(names.map((name) => [name, [] as Array<number>]))
  // Warms the JIT up.
  for (const name of names) await round(contenders[name], options.seconds / 2)
  for (let n = 0; n < options.rounds; n++)
    for (const name of n % 2 === 0 ? names : [...names].reverse())
      rates.get(name)?.push(await round(contenders[name], options.seconds))
  return Object.fromEntries(names.map((name) => [name, median(rates.get(name) ?? [])])) as Record<
    Name,
    number
  >
}
