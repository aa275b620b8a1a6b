import { execFile } from "node:child_process"
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import * as Stream from "effect/Stream"
import { Webhook } from "standardwebhooks"
import * as WebhookSender from "../../../src/adapters/json-rpc/services/WebhookSender.js"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as SqlPostgres from "../../../src/adapters/sql/postgres/Postgres.js"
import * as Sqlite from "../../../src/adapters/sql/sqlite/Sqlite.js"
import * as SqlWebhooks from "../../../src/adapters/sql/webhooks/Webhooks.js"
import * as WakeUps from "../../../src/application/answers/WakeUps.js"
import { Replicas } from "../../../src/application/ports/Replicas.js"
import { Webhooks, WebhooksError } from "../../../src/application/ports/Webhooks.js"
import * as Deliver from "../../../src/application/webhooks/Deliver.js"
import * as Facts from "../../support/journal/Facts.js"
import * as Journals from "../../support/journal/Journals.js"
import { options } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"
import * as Postgres from "../../support/postgres/Postgres.js"
import * as Time from "../../support/Time.js"

interface Hit {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
  readonly type: string
  readonly data: { readonly requestId: string; readonly sequence: number }
}

/** A server that records requests and replies as `answer` says. */
const receiver = (answer: (hit: Hit, response: http.ServerResponse) => void) =>
  Effect.gen(function* () {
    const hits: Array<Hit> = []
    const told = yield* Queue.unbounded<Hit>()
    const server = yield* Effect.acquireRelease(
      Effect.callback<http.Server>((resume) => {
        const made = http.createServer((request, response) => {
          let body = ""
          request.setEncoding("utf8")
          request.on("data", (text: string) => {
            body += text
          })
          request.on("end", () => {
            const headers = request.headers as Readonly<Record<string, string>>
            const hit = { headers, body, ...JSON.parse(body) }
            hits.push(hit)
            answer(hit, response)
            Queue.offerUnsafe(told, hit)
          })
        })
        made.listen(0, "127.0.0.1", () => resume(Effect.succeed(made)))
      }),
      (made) =>
        Effect.sync(() => {
          made.closeAllConnections()
          made.close()
        })
    )
    const { port } = server.address() as AddressInfo
    return { hits, url: `http://127.0.0.1:${port}/hook`, next: Queue.take(told) }
  })

const ok = (_: Hit, response: http.ServerResponse) => void response.writeHead(204).end()
const status = (code: number) => (_: Hit, response: http.ServerResponse) =>
  void response.writeHead(code, { location: "http://127.0.0.1:1/" }).end()

const sender = WebhookSender.layer({ egress: { allowLoopback: true } })
/** A sender with a shorter reply time-out than the service's. */
const impatient = WebhookSender.layer({ egress: { allowLoopback: true }, http: { totalMillis: 500 } })

const replica = (process: string) =>
  Layer.succeed(Replicas, {
    process,
    owns: () => true,
    independent: Effect.succeed([]),
    tell: () => Effect.void,
    assigned: Stream.never,
    signals: Stream.empty
  })

/** A process that delivers, until the scope ends. */
const begin = (process = "this one") =>
  Effect.gen(function* () {
    const wakeUps = yield* WakeUps.make(yield* Journals.all)
    yield* Effect.provide(Deliver.start, replica(process)).pipe(
      Effect.provideService(WakeUps.WakeUps, wakeUps)
    )
    return wakeUps
  })

const turn = Effect.promise(() => new Promise((turned) => setImmediate(turned)))

/** Turns the event loop until the condition holds. */
const until = <R>(look: Effect.Effect<boolean, unknown, R>): Effect.Effect<void, never, R> =>
  Effect.flatMap(Effect.orDie(look), (isSo) => (isSo ? Effect.void : Effect.andThen(turn, until(look))))

/** Advances time in steps that leave the store time to answer: longer ones would pass before it does. */
const pass = (seconds: number, step = 5): Effect.Effect<void, WebhooksError, Webhooks> =>
  Effect.forEach(
    Array.from({ length: seconds / step }, (_, n) => n),
    () =>
      Effect.andThen(
        Time.adjust(`${step} seconds`),
        Effect.flatMap(Webhooks, (store) => store.oldest)
      ),
    { discard: true }
  )

const webhookOf = (webhookId: string) =>
  Effect.flatMap(Webhooks, (store) =>
    Effect.map(store.list(null), (all) => all.find((it) => it.webhookId === webhookId))
  )
const owed = (webhookId: string, waiting: number) =>
  until(Effect.map(webhookOf(webhookId), (it) => it?.waiting === waiting))

const add = (url: string, account = Make.alice) =>
  Effect.flatMap(Webhooks, (store) => store.add(account, Redacted.make(url), [], "operator"))

/** The whole way of a request: accepted, signed, submitted, included, settled, final. */
const life = (requestId: string, n: number) =>
  Effect.gen(function* () {
    const journal = yield* Journals.all
    const nonce = BigInt(n)
    yield* Facts.signOps(requestId, [n], nonce)
    yield* journal.settle(Make.mined(nonce), [Make.landed(Make.word(n), nonce)], true)
    yield* Facts.answer(journal, requestId, "{}", { httpStatus: 200 })
  })

/** The library reads the machine's clock: it is set to the message's time. */
const verified = (hit: Hit | undefined, by: Redacted.Redacted<string> | null) => {
  const now = Date.now
  Date.now = () => Number(hit?.headers["webhook-timestamp"]) * 1_000
  try {
    new Webhook(by === null ? "" : Redacted.value(by)).verify(hit?.body ?? "", hit?.headers ?? {})
    return true
  } catch {
    return false
  } finally {
    Date.now = now
  }
}

const sequences = (hits: ReadonlyArray<Hit>, requestId: string) =>
  hits.filter((hit) => hit.data.requestId === requestId).map((hit) => hit.data.sequence)

const databases = Postgres.perFile()
const on = (client: typeof databases.layer) =>
  Layer.provideMerge(Layer.mergeAll(SqlJournal.layer(options), SqlWebhooks.layer(options), sender), client)

for (const [name, layer] of [
  ["SQLite", Layer.fresh(on(Layer.orDie(Sqlite.layer({ filename: ":memory:" }))))],
  ["PostgreSQL", Layer.fresh(on(databases.layer))]
] as const) {
  const fact = (
    text: string,
    body: Effect.Effect<
      void,
      unknown,
      Journals.Ports | Webhooks | Layer.Success<typeof sender> | import("effect/Scope").Scope
    >
  ) => it.effect(text, () => Effect.provide(body, Layer.fresh(layer)))

  describe(`webhooks in ${name}`, { timeout: 120_000 }, () => {
    fact(
      "receive every event from before the process, in order for each request, signed",
      Effect.gen(function* () {
        const { hits, url } = yield* receiver(ok)
        const { secret, webhookId } = yield* add(url)
        yield* life("r1", 0)
        yield* life("r2", 1)
        yield* begin()
        yield* owed(webhookId, 0)
        expect(sequences(hits, "r1")).toEqual([1, 2, 3, 4, 5, 6])
        expect(sequences(hits, "r2")).toEqual([1, 2, 3, 4, 5, 6])
        for (const hit of hits)
          expect([verified(hit, secret), verified({ ...hit, body: `${hit.body} ` }, secret)]).toEqual([
            true,
            false
          ])
        expect(new Set(hits.map(({ headers }) => headers["webhook-id"])).size).toBe(12)
        expect(hits.find(({ type }) => type === "request.final")?.data).toMatchObject({
          endpoint: "/execute",
          chainId: 31_337,
          httpStatus: 200
        })
      })
    )

    fact(
      "receive only their own account's requests, and only the kinds they select",
      Effect.gen(function* () {
        const { hits, url } = yield* receiver(ok)
        const store = yield* Webhooks
        yield* add(url, Make.bob)
        const { webhookId } = yield* store.add(
          Make.alice,
          Redacted.make(url),
          ["submitted", "final"],
          "operator"
        )
        yield* life("r1", 0)
        yield* begin()
        yield* owed(webhookId, 0)
        expect(sequences(hits, "r1")).toEqual([3, 6])
        expect((yield* store.list(Make.bob)).map(({ waiting }) => waiting)).toEqual([0])
      })
    )

    fact(
      "are retried later after a failure, with the same id, and no event of the request overtakes",
      Effect.gen(function* () {
        let answer = status(500)
        const { hits, next, url } = yield* receiver((hit, response) => answer(hit, response))
        const { webhookId } = yield* add(url)
        yield* life("r1", 0)
        yield* begin()
        yield* next
        yield* until(
          Effect.map(Webhooks.pipe(Effect.flatMap((it) => it.due("this one"))), (due) => due.length === 0)
        )
        yield* pass(4, 1)
        expect(sequences(hits, "r1")).toEqual([1])
        answer = ok
        yield* pass(3, 1)
        yield* owed(webhookId, 0)
        expect(sequences(hits, "r1")).toEqual([1, 1, 2, 3, 4, 5, 6])
        expect(hits[1]?.headers["webhook-id"]).toBe(hits[0]?.headers["webhook-id"])
      })
    )

    fact(
      "that fail are retried after 5 s, 10 s, 20 s, then every 30 s, whatever else is due; and soon again after a success",
      Effect.gen(function* () {
        let answer = status(500)
        const times: Array<number> = []
        let seconds = 0
        const { hits, next, url } = yield* receiver((hit, response) => {
          if (times.at(-1) !== seconds) times.push(seconds)
          answer(hit, response)
        })
        const store = yield* Webhooks
        yield* add(url)
        for (let n = 0; n < 3; n++) yield* Facts.acceptOp(`r${n}`, n)
        yield* begin()
        yield* next
        const tick = Effect.suspend(() => {
          seconds += 1
          return pass(1, 1)
        })
        // A poll under way when a second passed saw no due event, and the next one needs another second.
        const soon = (
          look: Effect.Effect<boolean, WebhooksError>,
          turns = 1
        ): Effect.Effect<void, WebhooksError, Webhooks> =>
          Effect.flatMap(look, (isSo) =>
            isSo ? Effect.void : Effect.andThen(turns % 1_000 === 0 ? tick : turn, soon(look, turns + 1))
          )
        const settled = soon(Effect.map(store.due("this one"), (due) => due.length === 0))
        const toldOf = (requestId: string, times: number) =>
          soon(Effect.map(store.oldest, () => sequences(hits, requestId).length === times))
        yield* settled
        const go = (until: number) =>
          Effect.gen(function* () {
            while (seconds < until) {
              if (seconds % 4 === 2) yield* Facts.acceptOp(`at ${seconds}`, 1_000 + seconds)
              yield* tick
              yield* settled
            }
          })
        yield* go(110)
        const pauses = times.map((time, n) => time - (times[n - 1] ?? 0))
        const close = [0, 5, 10, 20, 30, 30].map((pause) => expect.toBeOneOf([pause, pause + 1, pause + 2]))
        expect(pauses.slice(0, 6)).toEqual(close)
        answer = ok
        yield* go(140)
        yield* Facts.acceptOp("after them", 2_000)
        yield* toldOf("after them", 1)
        answer = status(500)
        yield* Facts.acceptOp("another one", 2_001)
        yield* toldOf("another one", 1)
        answer = ok
        const tried = seconds
        yield* toldOf("another one", 2)
        expect(seconds - tried).toBeLessThan(10)
      })
    )

    for (const [code, retryAfter] of [
      [429, () => "120"],
      [503, () => new Date(120_000).toUTCString()]
    ] as const)
      fact(
        `that reply ${code} with Retry-After get no event until then, whatever else is due`,
        Effect.gen(function* () {
          let isBusy = true
          const { hits, next, url } = yield* receiver((hit, response) =>
            hit.data.requestId === "r1" && isBusy
              ? response.writeHead(code, { "retry-after": retryAfter() }).end()
              : response.writeHead(204).end()
          )
          const store = yield* Webhooks
          const { webhookId } = yield* add(url)
          yield* Facts.acceptOp("r1", 1)
          yield* begin()
          yield* next
          yield* until(Effect.map(store.due("this one"), (due) => due.length === 0))
          yield* Facts.acceptOp("r2", 2)
          yield* pass(115)
          expect(hits.map(({ data }) => data.requestId)).toEqual(["r1"])
          isBusy = false
          yield* pass(20)
          yield* owed(webhookId, 0)
          expect(hits.map(({ data }) => data.requestId).sort()).toEqual(["r1", "r1", "r2"])
        })
      )

    fact(
      "that reply Retry-After in a round get its remaining events then",
      Effect.gen(function* () {
        const { hits, next, url } = yield* receiver((hit, response) =>
          hits.length > 4 ? response.writeHead(429, { "retry-after": "60" }).end() : ok(hit, response)
        )
        const store = yield* Webhooks
        const { webhookId } = yield* add(url)
        for (let n = 0; n < 16; n++) yield* Facts.acceptOp(`r${n}`, n)
        yield* begin()
        yield* next
        yield* until(Effect.map(store.due("this one"), (due) => due.length === 0))
        expect(yield* webhookOf(webhookId)).toMatchObject({ waiting: 12 })
        const before = hits.length
        // Only the deliveries that ran concurrently, and none of the next round.
        expect(before).toBeLessThan(16)
        yield* pass(55)
        expect(hits.length).toBe(before)
        hits.length = 0
        yield* store.setState(webhookId, "paused", "operator")
        yield* store.setState(webhookId, "enabled", "operator")
        yield* pass(5)
        yield* until(Effect.sync(() => hits.length > 0))
      })
    )

    fact(
      "receive an event again when their process dies between taking it and recording that",
      Effect.gen(function* () {
        const { hits, next, url } = yield* receiver(ok)
        const { webhookId } = yield* add(url)
        yield* Facts.acceptOp("r1", 1)
        const store = yield* Webhooks
        const away = new WebhooksError({ reason: "unavailable", message: "the store is away" })
        const dying = { ...store, delivered: () => Effect.fail(away), release: () => Effect.fail(away) }
        yield* Effect.scoped(Effect.andThen(Effect.provideService(begin("dying"), Webhooks, dying), next))
        yield* begin("the next one")
        // Its claim outlives it.
        yield* pass(65)
        yield* owed(webhookId, 0)
        expect(sequences(hits, "r1")).toEqual([1, 1])
        expect(hits[1]?.headers["webhook-id"]).toBe(hits[0]?.headers["webhook-id"])
      })
    )

    fact(
      "delay no other webhook when they are slow",
      Effect.gen(function* () {
        const held: Array<http.ServerResponse> = []
        const slow = yield* receiver((_, response) => void held.push(response))
        const quick = yield* receiver(ok)
        yield* add(slow.url)
        const { webhookId } = yield* add(quick.url)
        yield* life("r1", 0)
        yield* begin()
        yield* owed(webhookId, 0)
        expect(sequences(quick.hits, "r1")).toEqual([1, 2, 3, 4, 5, 6])
        expect(sequences(slow.hits, "r1")).toEqual([1])
        // The process waits for its current deliveries when it ends.
        for (const response of held) response.writeHead(500).end()
      })
    )

    fact(
      "fail a delivery when they begin a reply and do not end it in time",
      Effect.gen(function* () {
        const { next, url } = yield* receiver((_, response) => {
          response.writeHead(200)
          response.write("a bit")
        })
        const store = yield* Webhooks
        const { webhookId } = yield* add(url)
        yield* Facts.acceptOp("r1", 1)
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* Effect.provide(begin(), impatient)
            yield* next
            yield* until(Effect.map(store.due("this one"), (due) => due.length === 0))
          })
        )
        yield* pass(35)
        const { deliveries } = (yield* store.next(webhookId, 1)) ?? { deliveries: [] }
        expect(deliveries[0]?.lastError).toBe("no complete answer within 500 ms")
      })
    )

    fact(
      "fail a delivery with a redirect or a long reply, and its cause is kept",
      Effect.gen(function* () {
        const redirecting = yield* receiver(status(302))
        const huge = yield* receiver((_, response) => void response.writeHead(200).end("x".repeat(100_000)))
        const store = yield* Webhooks
        const ids = [(yield* add(redirecting.url)).webhookId, (yield* add(huge.url)).webhookId]
        // A closed port.
        const closed = yield* Effect.scoped(receiver(ok))
        ids.push((yield* add(closed.url)).webhookId)
        yield* Facts.acceptOp("r1", 1)
        yield* Effect.scoped(
          Effect.andThen(begin(), until(Effect.map(store.due("this one"), (due) => due.length === 0)))
        )
        expect(redirecting.hits).toHaveLength(1)
        // Due again, without a deliverer.
        yield* Time.adjust("31 seconds")
        const errors = yield* Effect.forEach(ids, (id) =>
          Effect.map(store.next(id, 1), (it) => it?.deliveries[0]?.lastError)
        )
        expect(errors).toEqual([
          "it answered 302",
          "the answer is larger than 65536 bytes",
          "the connection failed (ECONNREFUSED)"
        ])
      })
    )

    fact(
      "are paused after three days of failures; an abandoned event is sent again by hand",
      Effect.gen(function* () {
        let answer = status(500)
        const { hits, url } = yield* receiver((hit, response) => answer(hit, response))
        const store = yield* Webhooks
        const { webhookId } = yield* add(url)
        yield* Facts.acceptOp("r1", 1)
        yield* store.failed({ webhookId, requestId: "r1", sequence: 1 }, "it answered 500", 0)
        yield* Time.adjust("3 days")
        yield* begin()
        yield* until(Effect.map(webhookOf(webhookId), (it) => it?.state === "failing"))
        expect(yield* webhookOf(webhookId)).toMatchObject({ waiting: 0, dead: 1 })
        const [given] = yield* store.dead(webhookId, 10)
        expect(given).toMatchObject({ requestId: "r1", lastError: "it answered 500", event: { sequence: 1 } })
        answer = ok
        const before = hits.length
        expect(yield* store.redeliver(webhookId, "another", "operator")).toBe(0)
        expect(yield* store.redeliver(webhookId, "r1", "operator")).toBe(1)
        yield* store.setState(webhookId, "enabled", "operator")
        yield* pass(35)
        yield* owed(webhookId, 0)
        expect(hits.length).toBe(before + 1)
      })
    )

    fact(
      "are not delayed by a failed attempt once another process has delivered the event",
      Effect.gen(function* () {
        const store = yield* Webhooks
        const { webhookId } = yield* add("http://127.0.0.1:1/hook")
        yield* Facts.signOps("r1", [1])
        const due = Effect.map(store.next(webhookId, 1), (it) =>
          it?.deliveries.map(({ event }) => event.sequence)
        )
        expect(yield* due).toEqual([1])
        const first = { webhookId, requestId: "r1", sequence: 1 }
        yield* store.delivered(first)
        yield* store.failed(first, "it answered 500", 3_600_000)
        expect(yield* due).toEqual([2])
      })
    )

    fact(
      "are paused immediately when they reply 410",
      Effect.gen(function* () {
        const { next, url } = yield* receiver(status(410))
        const { webhookId } = yield* add(url)
        yield* Facts.acceptOp("r1", 1)
        yield* begin()
        yield* next
        yield* until(Effect.map(webhookOf(webhookId), (it) => it?.state === "failing"))
        expect((yield* webhookOf(webhookId))?.waiting).toBe(1)
      })
    )

    fact(
      "receive no events while paused, and all of them afterwards",
      Effect.gen(function* () {
        const { hits, url } = yield* receiver(ok)
        const store = yield* Webhooks
        const { webhookId } = yield* add(url)
        expect(yield* store.setState(webhookId, "paused", "operator")).toBe(true)
        expect(yield* store.setState("another", "paused", "operator")).toBe(false)
        yield* life("r1", 0)
        yield* Effect.scoped(Effect.andThen(begin(), pass(10)))
        expect(hits).toEqual([])
        yield* store.setState(webhookId, "enabled", "operator")
        yield* begin("the next one")
        yield* owed(webhookId, 0)
        expect(sequences(hits, "r1")).toEqual([1, 2, 3, 4, 5, 6])
      })
    )

    fact(
      "get a signature of each secret until its overlap ends, however often it is rotated; or of only the newest",
      Effect.gen(function* () {
        const { hits, url } = yield* receiver(ok)
        const store = yield* Webhooks
        const { secret: first, webhookId } = yield* add(url)
        const hour = 3_600_000
        const second = yield* store.rotate(webhookId, 2 * hour, "operator")
        const third = yield* store.rotate(webhookId, hour, "operator")
        const sent = (n: number) =>
          Effect.gen(function* () {
            yield* Facts.acceptOp(`r${n}`, n)
            yield* Effect.scoped(Effect.andThen(begin(`process ${n}`), owed(webhookId, 0)))
            return [first, second, third].map((by) => verified(hits[n], by))
          })
        expect(yield* sent(0)).toEqual([true, true, true])
        yield* Time.adjust("1 hour")
        expect(yield* sent(1)).toEqual([true, false, true])
        const fourth = yield* store.rotate(webhookId, 100 * hour, "operator")
        expect(yield* sent(2)).toEqual([true, false, true])
        expect(verified(hits[2], fourth)).toBe(true)
        const alone = yield* store.rotate(webhookId, hour, "operator")
        expect(yield* sent(3)).toEqual([false, false, false])
        expect([verified(hits[3], fourth), verified(hits[3], alone)]).toEqual([false, true])
        for (let n = 0; n < 9; n++) yield* store.rotate(webhookId, 100 * hour, "operator")
        const refused = yield* Effect.flip(store.rotate(webhookId, 100 * hour, "operator"))
        expect(refused.reason).toBe("tooManySecrets")
        yield* sent(4)
        expect(hits[4]?.headers["webhook-signature"]?.split(" ")).toHaveLength(10)
        expect(verified(hits[4], alone)).toBe(true)
        expect(yield* store.remove(webhookId, "operator")).toBe(true)
      })
    )

    fact(
      "of a dead process are served by another one, once its claim has ended",
      Effect.gen(function* () {
        const { hits, url } = yield* receiver(ok)
        const store = yield* Webhooks
        const { webhookId } = yield* add(url)
        const now = yield* Clock.currentTimeMillis
        expect(yield* store.claim(webhookId, "the dead one", now + 30_000)).toBe(true)
        yield* Facts.acceptOp("r1", 1)
        yield* begin("the other one")
        yield* pass(20)
        expect(hits).toEqual([])
        yield* pass(15)
        yield* owed(webhookId, 0)
        expect(hits).toHaveLength(1)
      })
    )

    fact(
      "of a process that died while its clock was ahead are served by another one once the clock is right",
      Effect.gen(function* () {
        const { hits, url } = yield* receiver(ok)
        const store = yield* Webhooks
        const { webhookId } = yield* add(url)
        const now = yield* Clock.currentTimeMillis
        expect(yield* store.claim(webhookId, "the dead one", now + 3_600_000)).toBe(true)
        yield* Facts.acceptOp("r1", 1)
        yield* begin("the other one")
        yield* pass(5)
        yield* owed(webhookId, 0)
        expect(hits).toHaveLength(1)
      })
    )

    fact(
      "belong to one process as long as an attempt may take: no event is sent twice, however slow both are",
      Effect.gen(function* () {
        const held: Array<http.ServerResponse> = []
        const { hits, url } = yield* receiver((_, response) => void held.push(response))
        const answer = () => {
          for (const response of held.splice(0)) response.writeHead(204).end()
        }
        const store = yield* Webhooks
        const { webhookId } = yield* add(url)
        for (let n = 0; n < 16; n++) yield* Facts.acceptOp(`r${n}`, n)
        const delivered: typeof store.delivered = (ref) =>
          Effect.andThen(Effect.sleep("14 seconds"), store.delivered(ref))
        yield* Effect.provideService(begin("the slow one"), Webhooks, { ...store, delivered })
        yield* until(Effect.sync(() => hits.length === 8))
        yield* begin("the other one")
        for (const waiting of [8, 0]) {
          // Almost the sender's time-out passes, then as much time as the store needs.
          yield* pass(9, 1)
          answer()
          yield* until(
            Effect.map(
              Effect.andThen(Time.adjust("1 second"), webhookOf(webhookId)),
              (it) => it?.waiting === waiting
            )
          )
          yield* until(Effect.sync(() => hits.length === 16))
        }
        expect(new Set(hits.map(({ headers }) => headers["webhook-id"])).size).toBe(16)
        expect(hits).toHaveLength(16)
      })
    )

    fact(
      "get no events from a process whose claim has passed to another one, and stay served",
      Effect.gen(function* () {
        const held: Array<http.ServerResponse> = []
        const { hits, url } = yield* receiver((_, response) => void held.push(response))
        const store = yield* Webhooks
        const { webhookId } = yield* add(url)
        for (let n = 0; n < 16; n++) yield* Facts.acceptOp(`r${n}`, n)
        let claims = 0
        const claim: typeof store.claim = (...asked) =>
          Effect.suspend(() => (++claims === 1 ? store.claim(...asked) : Effect.succeed(false)))
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* Effect.provideService(begin("the slow one"), Webhooks, { ...store, claim })
            yield* until(Effect.sync(() => hits.length === 8))
            yield* pass(9, 1)
            for (const response of held) response.writeHead(204).end()
            yield* until(Effect.sync(() => claims >= 2))
            yield* owed(webhookId, 8)
          })
        )
        expect(hits).toHaveLength(8)
        yield* store.release(webhookId, "the slow one")
        expect(yield* store.due("the other one")).toEqual([webhookId])
      })
    )

    fact(
      "get no delivered event again after the store was away for seconds",
      Effect.gen(function* () {
        const { hits, url } = yield* receiver(ok)
        const store = yield* Webhooks
        const { webhookId } = yield* add(url)
        yield* Facts.acceptOp("r1", 1)
        let failures = 0
        const delivered: typeof store.delivered = (ref) =>
          Effect.suspend(() =>
            ++failures > 10
              ? store.delivered(ref)
              : Effect.fail(new WebhooksError({ reason: "unavailable", message: "the store is away" }))
          )
        yield* Effect.provideService(begin(), Webhooks, { ...store, delivered })
        yield* until(Effect.sync(() => failures > 0))
        yield* until(
          Effect.map(Effect.andThen(Time.adjust("1 second"), webhookOf(webhookId)), (it) => it?.waiting === 0)
        )
        yield* pass(60)
        expect(hits).toHaveLength(1)
      })
    )

    fact(
      "receive this process's events immediately, before the next poll for those of others",
      Effect.gen(function* () {
        const { url } = yield* receiver(ok)
        const { webhookId } = yield* add(url)
        const wakeUps = yield* begin()
        yield* Facts.acceptOp("r0", 0)
        yield* pass(5)
        yield* owed(webhookId, 0)
        // Of the second between two looks less than a half passes: a millisecond for each turn of the event loop.
        yield* Facts.acceptOp("r1", 1)
        yield* wakeUps.notifyEvents
        for (let turns = 0; turns < 400 && (yield* webhookOf(webhookId))?.waiting !== 0; turns++)
          yield* Effect.andThen(
            Time.adjust("1 millis"),
            Effect.promise(() => new Promise((turned) => setImmediate(turned)))
          )
        expect(yield* webhookOf(webhookId)).toMatchObject({ waiting: 0 })
      })
    )

    fact(
      "are served by one process at a time, and their deletion drops pending deliveries",
      Effect.gen(function* () {
        const { hits, url } = yield* receiver(ok)
        const store = yield* Webhooks
        const { webhookId } = yield* add(url)
        for (const n of [0, 1, 2, 3]) yield* life(`r${n}`, n)
        yield* Effect.forEach(["one", "two", "three"], begin, { concurrency: "unbounded" })
        yield* owed(webhookId, 0)
        expect(hits).toHaveLength(24)
        yield* store.setState(webhookId, "paused", "operator")
        yield* life("r9", 9)
        const journal = yield* Journals.all
        yield* journal.forget(Number.MAX_SAFE_INTEGER)
        expect((yield* webhookOf(webhookId))?.waiting).toBe(0)
        yield* Facts.acceptOp("r10", 10)
        expect([
          yield* store.remove(webhookId, "operator"),
          yield* store.remove(webhookId, "operator")
        ]).toEqual([true, false])
        expect(yield* store.oldest).toBe(null)
      })
    )
  })
}

it("a claim lasts longer than the sender waits for an answer and the store for a statement", () => {
  const { connectMillis, firstByteMillis, totalMillis } = WebhookSender.limits
  expect([connectMillis, firstByteMillis, totalMillis]).toEqual([5_000, 10_000, 10_000])
  expect(Deliver.attemptMillis).toBeGreaterThan(totalMillis + SqlPostgres.defaultAnswerTimeoutMillis)
  expect(Deliver.claimMillis).toBeGreaterThan(Deliver.attemptMillis)
})

describe("docs/webhooks.md", () => {
  it.live("has a receiver that runs unchanged", () =>
    Effect.gen(function* () {
      const [, code = ""] = /```js\n([\s\S]*?)```/.exec(readFileSync("docs/webhooks.md", "utf8")) ?? []
      expect(code.trim().split("\n").length).toBeLessThanOrEqual(20)
      const file = `test/ports/webhooks/.receiver-${process.pid}.mjs`
      const secret = `whsec_${Buffer.alloc(32, 7).toString("base64")}`
      const port = yield* Effect.scoped(Effect.map(receiver(ok), ({ url }) => Number(new URL(url).port)))
      const said = yield* Queue.unbounded<string>()
      yield* Effect.acquireRelease(
        Effect.sync(() => {
          writeFileSync(file, `${code}\nconsole.log("ready")`)
          const child = execFile(process.execPath, [file], {
            env: { WEBHOOK_SECRET: secret, PORT: String(port), PATH: process.env.PATH }
          })
          child.stdout?.on("data", (text: string) => Queue.offerUnsafe(said, text))
          return child
        }),
        (child) =>
          Effect.sync(() => {
            child.kill()
            rmSync(file)
          })
      )
      yield* Queue.take(said)
      const { send } = Context.get(
        yield* Layer.build(sender),
        (yield* Effect.promise(() => import("../../../src/application/ports/Webhooks.js"))).WebhookSender
      )
      const { headers } = yield* Effect.promise(() => import("../../../src/domain/crypto/StandardWebhook.js"))
      const message = {
        id: "r1_1",
        timestamp: Math.floor(Date.now() / 1_000),
        body: JSON.stringify({ type: "request.final", data: { requestId: "r1", sequence: 1 } })
      }
      const url = Redacted.make(`http://127.0.0.1:${port}/`)
      const statuses = yield* Effect.forEach([secret, secret, "whsec_AAAA"], (by) =>
        Effect.retry(send(Make.alice, url, headers([by], message), message.body), { times: 50 })
      )
      expect(statuses.map(({ status }) => status)).toEqual([204, 204, 400])
      expect(yield* Queue.take(said)).toBe("request.final r1 1\n")
    })
  )
})
