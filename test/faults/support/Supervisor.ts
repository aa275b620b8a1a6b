import { type Program, run } from "../../support/process/Program.js"
import type { Build } from "./Build.js"
import * as Killing from "./Killing.js"
import type { Random } from "./Random.js"
import type { Kill } from "./Scenario.js"

/** Keeps the service running: restarts it after each kill, on the same configuration and database. */
export interface Supervisor {
  /** Its URL, once it listens; rejects when it cannot be started, or has been stopped. */
  readonly url: () => Promise<string>
  /** From now on lives end as planned, this one first. */
  readonly arm: () => void
  /** From now on lives are not ended. */
  readonly disarm: () => void
  /** Called by the node for each transaction: some lives end there. */
  readonly onSend: (moment: "before" | "after") => void
  /** Ends this life, as an operator does after a configuration change. */
  readonly bounce: () => void
  /** Stops this life's process until `thaw`. */
  readonly freeze: () => void
  readonly thaw: () => void
  readonly restarts: () => number
  /** Places where it was killed so far. */
  readonly deaths: () => ReadonlyArray<string>
  /** Unplanned ends, and crashes in its log. */
  readonly complaints: () => ReadonlyArray<string>
  readonly log: () => string
  readonly stop: () => Promise<void>
}

export interface Options {
  readonly build: Build
  readonly folder: string
  readonly config: string
  /** One per life from `arm` on; lives after the last are not killed. */
  readonly kills: ReadonlyArray<Kill>
  /**
   * Whether the database was away since then (Unix milliseconds): a life that began then may have failed because of it.
   */
  readonly wasAway?: (since: number) => boolean
}

/** A service that ends by itself this often is not restarted. */
const mostFailures = 3

/** This many starts on a silent database are a complaint. */
const mostUnheard = 20

/** Name of the death of a life that never reached its step. */
const overdueName = "instead of a step that was not reached"

const nameOf = (kill: Kill): string => {
  switch (kill.at) {
    case "clock":
      return "by the clock"
    case "send":
      return `${kill.moment} send`
    case "journal":
      return `${kill.moment} ${kill.step ?? "any"}`
    case "statement":
      return `at ${kill.text}`
  }
}

/** The process itself ends there. */
const isOwn = (kill: Kill | undefined) => kill?.at === "journal" || kill?.at === "statement"

/** The reason of a service that ends because the database replies later than its time-out: a code would follow. */
const unanswered =
  /(schema of the database cannot be brought up to date|cannot use the PostgreSQL server at \S+)"?\s*[,}\n]/

/** The service's log lines about a silent database. */
const ofStore =
  /(the|the journal's|the accounts'|authentication) store|cannot be let in|could not be settled|storage is unhealthy|SqlError|database/

/** The message of an error in the log, without its variable parts; `excused`: the database was away. */
export const complaint = (line: string, excused: boolean): ReadonlyArray<string> =>
  /"level":"(ERROR|FATAL)"/.test(line) && !(excused && ofStore.test(line))
    ? [line.replace(/"(time|requestId|txHash)":"[^"]*",?/g, "").slice(0, 500)]
    : []

const tallied = (texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  [...new Set(texts)].map((text) => `${texts.filter((other) => other === text).length} x ${text}`)

export const start = ({ build, config, folder, kills, wasAway = () => false }: Options): Supervisor => {
  const programs: Array<Program> = []
  const deaths: Array<string> = []
  const failures: Array<string> = []
  let phase: "before" | "armed" | "disarmed" | "stopping" = "before"
  let life = -1
  let sends = { before: 0, after: 0 }
  let timer: NodeJS.Timeout | undefined
  let current: Program
  let url: Promise<string>

  const kill = () => kills[life]
  const end = () => void current.child.kill("SIGKILL")
  /** Ends this life at its time; the name of its death says so. */
  let overdue = false
  let bounced = false
  let again: NodeJS.Timeout | undefined
  let unheard = 0
  const clock = (planned: Kill | undefined) => {
    if (planned === undefined || planned.at === "send") return
    const millis = planned.at === "clock" ? planned.millis : planned.atLatest
    if (millis === null) return
    timer = setTimeout(() => {
      overdue = planned.at !== "clock"
      end()
    }, millis)
  }
  const begin = () => {
    life += 1
    sends = { before: 0, after: 0 }
    const planned = phase === "disarmed" ? undefined : kill()
    const spot = { ...planned, armed: phase === "armed" }
    const env = isOwn(planned) ? { [Killing.variable]: JSON.stringify(spot) } : {}
    const main = life === 0 ? (build.earlier ?? build.main) : build.main
    const program = run([main], { cwd: folder, env: { CASTELLAN_CONFIG: config, ...env } })
    current = program
    programs.push(program)
    url = program.says('"message":"listening"').then(() => {
      const found = /"url":"([^"]+)"/.exec(program.stdout())?.[1]
      if (found === undefined) throw new Error("the service does not say where it listens")
      return found
    })
    url.catch(() => undefined)
    overdue = false
    if (phase === "armed") clock(planned)
    const began = Date.now()
    void program.ended.then((how) => {
      clearTimeout(timer)
      if (phase === "stopping") return
      if (bounced && how === "SIGKILL") {
        bounced = false
        return begin()
      }
      if (
        typeof how === "number" &&
        (wasAway(began) || unanswered.test(program.stderr() + program.stdout()))
      ) {
        again = setTimeout(begin, 200)
        unheard += 1
        if (unheard === mostUnheard) failures.push(`the database answered none of ${unheard} starts`)
        return
      }
      // The disarm signal also ends a process that does not yet listen to signals.
      if ((how === "SIGKILL" || how === Killing.armSignal) && planned !== undefined)
        deaths.push(overdue ? overdueName : nameOf(planned))
      else failures.push(`the service ended with ${how}: ${program.stderr().slice(-1_000)}`)
      if (failures.length < mostFailures) begin()
    })
  }
  begin()
  process.once("exit", end)

  const log = () => programs.map((program) => program.stdout() + program.stderr()).join("--- killed ---\n")

  return {
    url: async () => {
      for (;;) {
        if (phase === "stopping") throw new Error("the service is stopped")
        const asked = url
        const found = await asked.catch(() => null)
        if (found !== null && asked === url) return found
        if (failures.length >= mostFailures) throw new Error(failures.join("\n"))
        await new Promise((resolve) => setTimeout(resolve, 20))
      }
    },
    arm: () => {
      phase = "armed"
      const planned = kill()
      if (isOwn(planned)) current.child.kill(Killing.armSignal)
      clock(planned)
    },
    disarm: () => {
      if (phase === "armed" && isOwn(kill())) current.child.kill(Killing.armSignal)
      phase = "disarmed"
      clearTimeout(timer)
    },
    onSend: (moment) => {
      sends[moment] += 1
      const planned = kill()
      if (phase === "armed" && planned?.at === "send" && planned.moment === moment)
        if (sends[moment] === planned.nth) end()
    },
    bounce: () => {
      bounced = true
      end()
    },
    freeze: () => void current.child.kill("SIGSTOP"),
    thaw: () => void current.child.kill("SIGCONT"),
    restarts: () => programs.length - 1,
    deaths: () => deaths,
    complaints: () => [
      ...failures,
      ...tallied(
        log()
          .split("\n")
          .flatMap((line) => complaint(line, wasAway(0)))
      )
    ],
    log,
    stop: async () => {
      phase = "stopping"
      process.off("exit", end)
      clearTimeout(timer)
      clearTimeout(again)
      end()
      await current.ended
    }
  }
}

/** Several processes as one service: each question goes to one of them. */
export const fleet = (members: readonly [Supervisor, ...Array<Supervisor>], random: Random): Supervisor => {
  const each = (act: (member: Supervisor) => void) => () => members.forEach(act)
  return {
    url: () => random.pick(members).url(),
    arm: each((member) => member.arm()),
    disarm: each((member) => member.disarm()),
    onSend: (moment) => members.forEach((member) => void member.onSend(moment)),
    bounce: each((member) => member.bounce()),
    freeze: each((member) => member.freeze()),
    thaw: each((member) => member.thaw()),
    restarts: () => members.reduce((sum, member) => sum + member.restarts(), 0),
    deaths: () => members.flatMap((member) => member.deaths()),
    complaints: () => members.flatMap((member) => member.complaints()),
    log: () => members.map((member) => member.log()).join("=== another process ===\n"),
    stop: async () => {
      await Promise.all(members.map((member) => member.stop()))
    }
  }
}
