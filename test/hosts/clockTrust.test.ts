import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, expect, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as SqlClient from "effect/sql/SqlClient"
import * as Sqlite from "../../src/adapters/sql/sqlite/Sqlite.js"
import { Budgets } from "../../src/application/ports/Budgets.js"
import type { AccountId } from "../../src/application/ports/Tenants.js"
import * as Keccak from "../../src/domain/primitives/Keccak.js"
import * as Config from "../../src/hosts/config/Config.js"
import * as Wiring from "../../src/hosts/Wiring.js"
import * as CommandLine from "../support/process/CommandLine.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-clock-"))
afterAll(() => rmSync(folder, { recursive: true }))

/** A node of chain 1 whose latest block is two hours old. */
const staleNode = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly close: () => void }>((resume) => {
    const block = {
      number: "0x10",
      hash: `0x${"01".repeat(32)}`,
      parentHash: `0x${"02".repeat(32)}`,
      timestamp: `0x${(Math.floor(Date.now() / 1_000) - 7_200).toString(16)}`,
      gasLimit: "0x1c9c380",
      baseFeePerGas: "0x1"
    }
    const answer = ({ id, method }: { readonly id: unknown; readonly method: string }) => ({
      jsonrpc: "2.0",
      id,
      result: method === "eth_getBlockByNumber" ? block : "0x1"
    })
    const server = createServer((request, response) => {
      let body = ""
      request.on("data", (chunk) => {
        body += chunk
      })
      request.on("end", () => {
        const asked = JSON.parse(body)
        response.setHeader("content-type", "application/json")
        response.end(JSON.stringify(Array.isArray(asked) ? asked.map(answer) : answer(asked)))
      })
    })
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      const close = () => {
        server.close()
        server.closeAllConnections()
      }
      resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, close }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

it.live(
  "a service whose chain is two hours behind deletes nothing for its age until store confirm-clock",
  () =>
    Effect.gen(function* () {
      const { url } = yield* staleNode
      const path = join(folder, "castellan.json")
      const filename = join(folder, "castellan.db")
      writeFileSync(
        path,
        JSON.stringify({
          profile: "production",
          listen: { host: "127.0.0.1", port: 8080 },
          database: { path: filename },
          keyPepper: { env: "PEPPER" },
          accounts: [],
          networks: [{ chainId: 1, rpc: { env: "NODE" } }]
        })
      )
      const env = { CASTELLAN_CONFIG: path, PEPPER: "a pepper that only this test uses", NODE: url }
      const doubted = yield* Deferred.make<void>()
      const confirmed = yield* Deferred.make<void>()
      const logger = Logger.layer([
        Logger.make(({ message }) => {
          if (String(message).includes('"castellan store confirm-clock"'))
            Deferred.doneUnsafe(doubted, Effect.void)
          if (String(message).includes("deletion and expiry resume"))
            Deferred.doneUnsafe(confirmed, Effect.void)
        })
      ])
      const ports = yield* Layer.build(
        Layer.provide(Wiring.layer(yield* Effect.fromResult(Config.load(env))), logger)
      )
      yield* Deferred.await(doubted)
      const { handOut } = Context.get(ports, Budgets)
      const sql = Context.get(yield* Layer.build(Sqlite.layer({ filename })), SqlClient.SqlClient)
      const count = Effect.map(
        sql<{ readonly n: number }>`select count(*) as n from budget_ops`,
        ([row]) => row?.n
      )
      const handOutTwo = Effect.forEach(["one", "two"], (op) =>
        handOut("acme" as AccountId, 1n, Keccak.hashText(op), 600)
      )
      yield* handOutTwo
      expect(yield* count).toBe(2)
      const said = yield* CommandLine.run(["store", "confirm-clock"], env)
      expect(said).toMatch(/^the clock is confirmed: it is 20/)
      yield* Deferred.await(confirmed)
      yield* handOutTwo
      expect(yield* count).toBe(1)
    }),
  60_000
)
