import { describe, expect, it } from "vitest"
import * as Client from "../../src/client/Client.js"

const encoder = new TextEncoder()

const block = (sequence: number, type: string, end = "\n") =>
  [
    `id: ${sequence}`,
    `event: ${type}`,
    `data: ${JSON.stringify({ requestId: "r", sequence, type, at: 1, atMillis: 1_000, data: {} })}`,
    "",
    ""
  ].join(end)

interface Connection {
  readonly pieces: ReadonlyArray<string>
  readonly ending?: "end" | "break" | "silence"
}

/** A service of prepared answers, one after the other. */
const scripted = (...answers: ReadonlyArray<Connection | Response | "refused">) => {
  const asked: Array<string | null> = []
  const cancelled: Array<number> = []
  const fetch = async (_: string | URL | Request, init: RequestInit = {}): Promise<Response> => {
    asked.push(new Headers(init.headers).get("last-event-id"))
    const number = asked.length - 1
    const answer = answers[number]
    if (answer === undefined) throw new Error("one connection too many")
    if (answer === "refused") throw new TypeError("fetch failed")
    if (answer instanceof Response) return answer
    const pieces = [...answer.pieces]
    const body = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const piece = pieces.shift()
        if (piece !== undefined) return controller.enqueue(encoder.encode(piece))
        if (answer.ending === "silence") return new Promise(() => {})
        return answer.ending === "break" ? controller.error(new TypeError("terminated")) : controller.close()
      },
      cancel: () => void cancelled.push(number)
    })
    return new Response(body, { headers: { "content-type": "text/event-stream" } })
  }
  const client = Client.make({ baseUrl: "https://castellan.example", apiKey: "key", retries: 1, fetch })
  return { asked, cancelled, client }
}

const all = async (events: AsyncIterable<Client.RequestEvent>) => {
  const told: Array<readonly [number, string]> = []
  for await (const { sequence, type } of events) told.push([sequence, type])
  return told
}

const whole = [
  [1, "accepted"],
  [2, "submitted"],
  [3, "final"]
]

describe("events of a request", () => {
  it("events come in order, in any pieces, up to the final one", async () => {
    const text = `: events\n\n${block(1, "accepted")}: still here\n\n${block(2, "submitted", "\r\n")}${block(3, "final")}`
    for (const pieces of [[text], [...text], [text.slice(0, 50), text.slice(50)]]) {
      const { asked, client } = scripted({ pieces })
      expect(await all(client.events("r"))).toEqual(whole)
      expect(asked).toEqual([null])
    }
  })

  it("events resume after the last one when the connection breaks, ends or is silent, each once", async () => {
    const { asked, client } = scripted(
      { pieces: [block(1, "accepted"), block(2, "submitted").slice(0, 20)], ending: "break" },
      "refused",
      { pieces: [block(1, "accepted"), block(2, "submitted")] },
      { pieces: [": still here\n\n"], ending: "silence" },
      { pieces: [block(3, "final")], ending: "break" }
    )
    expect(await all(client.events("r", { silenceMillis: 20 }))).toEqual(whole)
    expect(asked).toEqual([null, "1", "1", "2", "2"])
  })

  it("events after the final one are read until the service has none left", async () => {
    const { asked, client } = scripted(
      { pieces: [block(4, "reopened")] },
      { pieces: [block(5, "final"), block(6, "settled")] }
    )
    expect((await all(client.events("r", { after: 3 }))).map(([sequence]) => sequence)).toEqual([4, 5, 6])
    expect(asked).toEqual(["3", "4"])
    const known = scripted(new Response(null, { status: 204 }))
    expect(await all(known.client.events("r", { after: 6 }))).toEqual([])
  })

  it("events reject when the connection breaks too often in a row without one", async () => {
    const broken = { pieces: [], ending: "break" } as const
    const { asked, client } = scripted({ pieces: [block(1, "accepted")], ending: "break" }, broken, broken)
    const told: Array<number> = []
    const following = (async () => {
      for await (const { sequence } of client.events("r", { reconnections: 2 })) told.push(sequence)
    })()
    await expect(following).rejects.toMatchObject({ code: "no_answer", cause: { message: "terminated" } })
    expect([told, asked]).toEqual([[1], [null, "1", "1"]])
  })

  it("events reject immediately when the service refuses", async () => {
    const body = { error: "request not found", code: "request_not_found", requestId: "q", details: [] }
    const { asked, client } = scripted(new Response(JSON.stringify(body), { status: 404 }))
    await expect(all(client.events("r"))).rejects.toMatchObject({ code: "request_not_found", status: 404 })
    expect(asked).toHaveLength(1)
  })

  it("events close their connection when the loop ends or the signal aborts", async () => {
    const left = scripted({ pieces: [block(1, "accepted")], ending: "silence" })
    for await (const _ of left.client.events("r")) break
    expect(left.cancelled).toEqual([0])
    const abort = new AbortController()
    const aborted = scripted({ pieces: [block(1, "accepted")], ending: "silence" })
    const following = (async () => {
      for await (const _ of aborted.client.events("r", { signal: abort.signal }))
        abort.abort(new Error("enough"))
    })()
    await expect(following).rejects.toThrow("enough")
    expect([aborted.cancelled, aborted.asked]).toEqual([[0], [null]])
  })
})
