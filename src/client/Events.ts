import type { EventData, EventKind } from "../application/ports/journal/Events.js"
import { CastellanError } from "./CastellanError.js"
import * as Transport from "./Transport.js"

/** One step of an accepted write. */
export interface RequestEvent {
  readonly requestId: string
  /** From 1 on, without a gap. */
  readonly sequence: number
  readonly type: EventKind
  /** Unix seconds. */
  readonly at: number
  /** Unix milliseconds. */
  readonly atMillis: number
  readonly data: EventData
}

export interface EventsOptions extends Transport.CallOptions {
  /** Only events after this sequence number. Default: all. */
  readonly after?: number
  /** Most reconnections in a row without an event. Default 4. */
  readonly reconnections?: number
  /** Longest silence of a connection, milliseconds; the service writes every 15 seconds. Default 45,000. */
  readonly silenceMillis?: number
}

/** Kinds after which the request has its answer, as in the service. */
const ends: ReadonlyArray<EventKind> = ["final", "cancelled", "expired"]

/** The events in blocks of `text/event-stream`, and the rest of the last block. */
const blocksOf = (text: string): readonly [ReadonlyArray<RequestEvent>, string] => {
  const blocks = text.split(/\r?\n\r?\n/)
  const rest = blocks.pop() ?? ""
  const events = blocks.flatMap((block) => {
    const data = block
      .split(/\r?\n/)
      .filter((line) => line.startsWith("data:"))
      .map((line) => line.slice(5))
    return data.length === 0 ? [] : [JSON.parse(data.join("\n")) as RequestEvent]
  })
  return [events, rest]
}

/** The events of one connection, until it ends or breaks. */
async function* read(
  response: Response,
  silenceMillis: number,
  signal: AbortSignal | undefined
): AsyncGenerator<RequestEvent, void, void> {
  const reader = response.body?.getReader()
  if (reader === undefined) return
  const decoder = new TextDecoder()
  let text = ""
  let timer: ReturnType<typeof setTimeout> | undefined
  // A connection lost without a close never answers.
  const silence = () =>
    new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error("the stream of events is silent")), silenceMillis)
    })
  const cancel = () => void reader.cancel().catch(() => {})
  signal?.addEventListener("abort", cancel, { once: true })
  try {
    for (;;) {
      signal?.throwIfAborted()
      const { done, value } = await Promise.race([reader.read(), silence()])
      clearTimeout(timer)
      if (done) return
      const [events, rest] = blocksOf(text + decoder.decode(value, { stream: true }))
      text = rest
      yield* events
    }
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener("abort", cancel)
    // A caller that stops midway leaves no connection open.
    cancel()
  }
}

const lost = (cause: unknown): CastellanError =>
  new CastellanError(
    "the stream of events broke off",
    { code: "no_answer", status: 0, requestId: null, details: [], body: null, idempotencyKey: null },
    cause
  )

/**
 * The events of an accepted write, until it has its answer. A connection that breaks is opened again after the last
 * event, so that each comes once and in order.
 */
export const make = (open: (exchange: Transport.Exchange) => Promise<Response>) =>
  async function* (
    requestId: string,
    { after = 0, reconnections = 4, signal, silenceMillis = 45_000 }: EventsOptions = {}
  ): AsyncGenerator<RequestEvent, void, void> {
    let last = after
    let isOver = false
    for (let failures = 0; ; ) {
      const response = await open({
        method: "GET",
        path: `/requests/${encodeURIComponent(requestId)}/events`,
        headers: { accept: "text/event-stream", ...(last > 0 && { "last-event-id": String(last) }) },
        idempotencyKey: null,
        repeatable: true,
        signal
      })
      if (response.status === 204) return
      let cause: unknown
      try {
        for await (const event of read(response, silenceMillis, signal)) {
          if (event.sequence <= last) continue
          failures = 0
          last = event.sequence
          isOver = ends.includes(event.type) || (isOver && event.type !== "reopened")
          yield event
        }
      } catch (thrown) {
        cause = thrown
      }
      signal?.throwIfAborted()
      if (isOver) return
      if (failures >= reconnections) throw lost(cause)
      await Transport.pause(Transport.backoff(failures), signal)
      failures += 1
    }
  }
