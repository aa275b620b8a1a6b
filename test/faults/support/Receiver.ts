import * as http from "node:http"
import * as Port from "../../support/process/Port.js"
import * as Random from "./Random.js"

/** An event of a request: as the journal stores it, or as a webhook received it. */
export interface Told {
  readonly requestId: string
  readonly sequence: number
  readonly kind: string
  /** JSON of the event's data. */
  readonly data: string
}

/** One received message, and whether it was answered with 2xx. */
export interface Arrival extends Told {
  readonly isTaken: boolean
}

/** An endpoint that goes away, answers 500, hangs, and processes messages that it rejects. */
export interface Receiver {
  readonly url: string
  /** In the order of their arrival. */
  readonly arrivals: () => ReadonlyArray<Arrival>
  /** From now on it misbehaves, or accepts every message. */
  readonly storm: () => void
  readonly calm: () => void
  /** Counts of its faults, by kind. */
  readonly faults: () => ReadonlyMap<string, number>
  readonly stop: () => Promise<void>
}

const moods = ["take", "take", "take", "500", "cut", "cut after", "hang"] as const

/** Members of every message; the rest of its data is the event's own. */
const frame = new Set(["requestId", "sequence", "endpoint", "chainId", "metadata"])

const read = (body: string): Told => {
  const { data, type } = JSON.parse(body)
  const own = Object.entries(data).filter(([name]) => !frame.has(name))
  return {
    requestId: data.requestId,
    sequence: data.sequence,
    kind: String(type).replace(/^request\./, ""),
    data: JSON.stringify(Object.fromEntries(own))
  }
}

export const start = async (seed: number): Promise<Receiver> => {
  const random = Random.make(`receiver ${seed}`)
  const arrivals: Array<Arrival> = []
  const faults = new Map<string, number>()
  const hanging = new Set<http.ServerResponse>()
  let isStorm = false
  const server = http.createServer(async (request, response) => {
    let body = ""
    try {
      for await (const text of request.setEncoding("utf8")) body += text
    } catch {
      return
    }
    const mood = isStorm ? random.pick(moods) : "take"
    if (mood !== "take") faults.set(`receiver ${mood}`, (faults.get(`receiver ${mood}`) ?? 0) + 1)
    arrivals.push({ ...read(body), isTaken: mood === "take" })
    if (mood === "take") response.writeHead(204).end()
    else if (mood === "500") response.writeHead(500).end()
    else if (mood === "hang") hanging.add(response)
    else if (mood === "cut") request.socket.destroy()
    else response.writeHead(204).end(() => request.socket.destroy())
  })
  const port = await Port.listen(server)
  return {
    url: `http://127.0.0.1:${port}/`,
    arrivals: () => arrivals,
    storm: () => {
      isStorm = true
    },
    calm: () => {
      isStorm = false
      for (const response of hanging) response.socket?.destroy()
      hanging.clear()
    },
    faults: () => faults,
    stop: async () => {
      server.closeAllConnections()
      await new Promise<void>((resolve) => void server.close(() => resolve()))
    }
  }
}

export interface Findings {
  readonly undelivered: ReadonlyArray<string>
  readonly outOfOrder: ReadonlyArray<string>
  readonly invented: ReadonlyArray<string>
}

const ends = new Set(["final", "cancelled", "expired"])

const nameOf = ({ kind, requestId, sequence }: Told): string => `${requestId} ${sequence} ${kind}`
const wholeOf = (told: Told): string => `${nameOf(told)} ${told.data}`

/** Elements that an event names; none for a direct transaction, which `all` stands for. */
const elementsOf = ({ data }: Told): ReadonlyArray<number | "all"> => JSON.parse(data).elements ?? ["all"]

/** Elements included without an earlier submitted event. */
const tooSoon = (events: ReadonlyArray<Told>): ReadonlyArray<string> => {
  const submitted = new Set<string>()
  const keyOf = ({ requestId }: Told, element: number | "all") => `${requestId} ${element}`
  return events.flatMap((event) => {
    const keys = elementsOf(event).map((element) => keyOf(event, element))
    if (event.kind === "submitted") for (const key of keys) submitted.add(key)
    return event.kind === "included" && !keys.every((key) => submitted.has(key))
      ? [`${nameOf(event)} before submitted`]
      : []
  })
}

/**
 * Compares arrivals with the journal: each request in `ended` is final there and must be reported. An event first
 * arrives after its predecessor, and an inclusion after its submission.
 */
export const judge = (
  events: ReadonlyArray<Told>,
  ended: ReadonlyArray<string>,
  arrivals: ReadonlyArray<Arrival>
): Findings => {
  const known = new Set(events.map(wholeOf))
  const there = new Set(arrivals.map(wholeOf))
  const isToldEnd = new Set(arrivals.flatMap(({ kind, requestId }) => (ends.has(kind) ? [requestId] : [])))
  const newest = new Map<string, number>()
  const outOfOrder: Array<string> = []
  for (const arrival of arrivals) {
    const before = newest.get(arrival.requestId) ?? 0
    if (arrival.sequence > before + 1) outOfOrder.push(`${nameOf(arrival)} after ${before}`)
    newest.set(arrival.requestId, Math.max(before, arrival.sequence))
  }
  return {
    undelivered: [
      ...events.filter((event) => !there.has(wholeOf(event))).map(nameOf),
      ...ended.filter((requestId) => !isToldEnd.has(requestId)).map((requestId) => `the end of ${requestId}`)
    ],
    outOfOrder: [...outOfOrder, ...tooSoon(events)],
    invented: arrivals.filter((arrival) => !known.has(wholeOf(arrival))).map(nameOf)
  }
}
