import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { make } from "../../../support/accounts/Castellan.js"
import * as CommandLine from "../../../support/process/CommandLine.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-watches-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** A node that reports its chain, and block 100 as its latest. */
const node = Effect.acquireRelease(
  Effect.callback<http.Server>((resume) => {
    const result = (method: string) =>
      method === "eth_chainId"
        ? "0x7a69"
        : { number: "0x64", hash: `0x${"11".repeat(32)}`, parentHash: `0x${"22".repeat(32)}` }
    const server = http.createServer((request, response) => {
      let body = ""
      request.on("data", (text: string) => {
        body += text
      })
      request.on("end", () => {
        const asked = [JSON.parse(body)].flat() as ReadonlyArray<{
          readonly id: number
          readonly method: string
        }>
        const answers = asked.map(({ id, method }) => ({ jsonrpc: "2.0", id, result: result(method) }))
        response.end(JSON.stringify(body.startsWith("[") ? answers : answers[0]))
      })
    })
    server.listen(0, "127.0.0.1", () => resume(Effect.succeed(server)))
  }),
  (server) =>
    Effect.sync(() => {
      server.closeAllConnections()
      server.close()
    })
)

it.live("watches are added, listed, paused, resumed and removed by command", () =>
  Effect.gen(function* () {
    const { env } = make(folder, { profile: "development", networks: [{ chainId: 31_337 }] })
    const { port } = (yield* node).address() as AddressInfo
    const run = (...words: ReadonlyArray<string>) => CommandLine.run(words, env)
    const json = <A>(...words: ReadonlyArray<string>) =>
      Effect.map(run(...words, "--json"), (text): A => JSON.parse(text))
    yield* run("accounts", "create", "acme", "--name", "Acme", "--tier", "pro")
    const { webhookId } = yield* json<{ readonly webhookId: string }>(
      "webhooks",
      "add",
      "acme",
      "https://example.com/hook"
    )
    const path = "/key-in-the-path"
    const event = "event Transfer(address indexed from, address indexed to, uint256 value)"
    const own = ["watches", "add", "acme", "--webhook", webhookId, "--rpc", `http://127.0.0.1:${port}${path}`]
    const to = `0x${"0a".repeat(20)}`
    const { watchId } = yield* json<{ readonly watchId: string }>(
      ...own,
      "--event",
      event,
      "--contract",
      to,
      "--fields",
      JSON.stringify({ to }),
      "--confirmations",
      "3"
    )
    const listed = yield* run("watches", "list", "--account", "acme", "--json")
    expect(JSON.parse(listed)).toMatchObject([
      {
        watchId,
        webhookId,
        account: "acme",
        chainId: 31_337,
        node: `http://127.0.0.1:${port}`,
        events: [event],
        fields: { to },
        confirmations: 3,
        fromBlock: 101,
        nextBlock: 101,
        state: "enabled",
        told: 0,
        waiting: 0
      }
    ])
    const shown = yield* run("watches", "show", watchId)
    for (const text of [listed, shown]) expect(text).not.toContain(path)
    expect(readFileSync(join(folder, "castellan.sqlite")).includes(path)).toBe(false)
    expect(yield* run("watches", "pause", watchId)).toBe(`watch ${watchId} is paused`)
    expect(yield* json("watches", "list")).toMatchObject([{ state: "paused" }])
    expect(yield* run("watches", "resume", watchId)).toBe(`watch ${watchId} is enabled`)
    const refused = (...words: ReadonlyArray<string>) => Effect.flip(run(...own, ...words))
    expect(yield* refused("--event", "event Transfer(")).toContain("eventDef: ")
    expect(yield* refused("--event", "event T(uint256 a) anonymous")).toContain("are not watched")
    expect(yield* refused("--event", event, "--contract", "0x12")).toContain("contracts[0]: ")
    expect(yield* refused("--event", event, "--fields", "{")).toContain("--fields: expected JSON")
    expect(yield* refused("--event", event, "--fields", '{"amount":"1"}')).toContain("fields.amount: ")
    expect(yield* refused("--event", event, "--from", "9000000")).toContain("fromBlock: ")
    expect(yield* refused("--event", event, "--from", "yesterday")).toContain("fromBlock: ")
    expect(yield* refused("--event", event, "--confirmations", "0")).toContain("confirmations: ")
    expect(yield* refused("--event", event, "--confirmations", "65")).toContain("expected at most 64")
    const elsewhere = (url: string) =>
      Effect.flip(run("watches", "add", "acme", "--webhook", webhookId, "--event", event, "--rpc", url))
    expect(yield* elsewhere("http://169.254.169.254/")).toContain("rpc: forbidden")
    expect(yield* elsewhere("ftp://127.0.0.1/")).toContain("rpc: expected an http or https URL")
    expect(
      yield* Effect.flip(run("watches", "add", "acme", "--webhook", webhookId, "--event", event))
    ).toContain("rpc")
    expect(yield* Effect.flip(run(...own.with(4, "none"), "--event", event))).toContain(
      "webhookId: the account has no such webhook"
    )
    expect(yield* Effect.flip(run("watches", "show", "none"))).toContain("there is no watch none")
    expect(yield* run("watches", "remove", watchId)).toBe(`watch ${watchId} is removed`)
    expect(yield* json("watches", "list")).toEqual([])
    yield* json(...own, "--event", event)
    yield* run("webhooks", "remove", webhookId)
    expect(yield* run("watches", "list")).toBe("no watch")
  })
)
