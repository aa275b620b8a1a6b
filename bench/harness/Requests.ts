import { ensure } from "./Claim.js"
import * as Client from "./Client.js"
import * as Processes from "./Processes.js"

/** A server and its keys: castellan, or a peer. */
export interface Server {
  readonly pid: number
  readonly keys: ReadonlyArray<string>
  readonly client: Client.Client
}

export interface Kind {
  /** Expected statuses. */
  readonly statuses: ReadonlyArray<number>
  readonly body: string
  /** Null: one of the server's keys. */
  readonly key: string | null
  /** Percentage of responses that may have other statuses, when a limit's window begins. */
  readonly others?: number
}

export interface Sample {
  /** Requests per CPU second of the server's process. */
  readonly perCpuSecond: number
  readonly perSecond: number
}

const callers = 16

/** Repeats one request from 16 callers, with keys in turn, and checks its status. */
export const measure = async (server: Server, millis: number, kind: Kind, most?: number): Promise<Sample> => {
  const cpu = Processes.cpuMillis(server.pid)
  const statuses = new Map<number, number>()
  let unexpected = ""
  const load = await Client.closedLoop(
    { callers, millis, ...(most !== undefined && { most }) },
    async (_, nth) => {
      const key = kind.key ?? server.keys[nth % server.keys.length] ?? ""
      const headers = { "content-type": "application/json", "x-api-key": key }
      const { status, text } = await server.client.send("POST", "/getbundleraddress", headers, kind.body)
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (!kind.statuses.includes(status)) unexpected = text
    }
  )
  const used = Processes.cpuMillis(server.pid) - cpu
  const right = kind.statuses.reduce((sum, status) => sum + (statuses.get(status) ?? 0), 0)
  ensure(
    load.done > 0 && load.done - right <= (load.done * (kind.others ?? 0)) / 100 + (kind.others ?? 0),
    `answers were not ${kind.statuses.join(" or ")}: ${[...statuses].map(([status, count]) => `${count} x ${status}`).join(", ")}: ${unexpected.slice(0, 500)}`
  )
  return { perCpuSecond: (load.done * 1_000) / used, perSecond: load.done / load.seconds }
}
