import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import * as http from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import * as Redacted from "effect/Redacted"
import { id } from "ethers"
import * as ChainRpc from "../../../src/adapters/json-rpc/node/ChainRpc.js"
import * as WebhookSender from "../../../src/adapters/json-rpc/services/WebhookSender.js"
import * as Networks from "../../../src/adapters/memory/Networks.js"
import * as SoleProcess from "../../../src/adapters/memory/Replicas.js"
import * as AbiStore from "../../../src/adapters/sql/AbiStore.js"
import * as SqlJournal from "../../../src/adapters/sql/journal/Journal.js"
import * as Sqlite from "../../../src/adapters/sql/Sqlite.js"
import * as SqlWatches from "../../../src/adapters/sql/watches/Watches.js"
import * as SqlWebhooks from "../../../src/adapters/sql/webhooks/Webhooks.js"
import * as WakeUps from "../../../src/application/lanes/requests/WakeUps.js"
import { OperatorAbi } from "../../../src/application/ports/AbiStore.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import { Webhooks } from "../../../src/application/ports/Webhooks.js"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as AddWatch from "../../../src/application/usecases/watches/AddWatch.js"
import * as Followers from "../../../src/application/watches/Followers.js"
import * as Deliver from "../../../src/application/webhooks/Deliver.js"
import { startAnvil } from "../../../src/hosts/cli/dev/Anvil.js"
import { NodeProvider } from "../../../src/hosts/cli/support/NodeProvider.js"
import { echo, echoCode, funded } from "../../support/ChainScript.js"
import * as Journals from "../../support/journal/Journals.js"
import { options } from "../../support/journal/Layers.js"
import * as Make from "../../support/journal/Make.js"

interface Message {
  readonly type: string
  readonly data: { readonly sequence: number; readonly args: { readonly n: string } }
}

/** The receiver's code as docs/watches.md shows it. */
const shown = Effect.promise(async () => {
  const code = [...readFileSync("docs/watches.md", "utf8").matchAll(/```js\n([\s\S]*?)```/g)][0]?.[1] ?? ""
  const module = await import(`data:text/javascript,${encodeURIComponent(code)}`)
  return module.apply as (events: Map<string, Message["data"]>, message: Message) => unknown
})

const receiver = Effect.gen(function* () {
  const told = yield* Queue.unbounded<Message>()
  const server = yield* Effect.acquireRelease(
    Effect.callback<http.Server>((resume) => {
      const made = http.createServer((request, response) => {
        let body = ""
        request.on("data", (text: string) => {
          body += text
        })
        request.on("end", () => {
          Queue.offerUnsafe(told, JSON.parse(body))
          response.writeHead(204).end()
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
  return { told, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` }
})

const caller: Caller = {
  principal: { accountId: Make.alice, name: "alice", tier: "free", scopes: new Set(["read"]), paused: false },
  requestId: "r"
}

const topic = id("Ping(uint256)")

it.live(
  "a watch on a live chain tells what is in it, through reorganisations and restarts, once in its sequence",
  () =>
    Effect.gen(function* () {
      const anvil = yield* Effect.acquireRelease(
        Effect.promise(() => startAnvil()),
        (started) => Effect.promise(() => started.stop())
      )
      const provider = yield* Effect.acquireRelease(
        Effect.sync(() => new NodeProvider(anvil.url, anvil.chainId, { staticNetwork: true })),
        (made) => Effect.sync(() => made.destroy())
      )
      const send = (method: string, ...params: ReadonlyArray<unknown>) =>
        Effect.promise(() => provider.send(method, [...params]))
      yield* send("anvil_setCode", echo, echoCode)
      const ping = (n: number) =>
        Effect.gen(function* () {
          const data = `${topic}${n.toString(16).padStart(64, "0")}`
          yield* send("eth_sendTransaction", { from: funded, to: echo, data, gas: "0x30d40" })
          yield* send("evm_mine")
        })
      const folder = yield* Effect.acquireRelease(
        Effect.sync(() => mkdtempSync(join(tmpdir(), "castellan-watches-"))),
        (made) => Effect.sync(() => rmSync(made, { recursive: true, force: true }))
      )
      const { told, url } = yield* receiver
      const apply = yield* shown

      /** All of a process that follows and delivers. */
      const process = Layer.mergeAll(
        SqlJournal.layer(options),
        SqlWatches.layer(options),
        SqlWebhooks.layer(options),
        WebhookSender.layer({ egress: { allowLoopback: true } }),
        ChainRpc.layer({ egress: { allowLoopback: true } }),
        Networks.layer({
          profiles: [NetworkProfile.make({ chainId: BigInt(anvil.chainId), pollIntervalMillis: 50 })]
        }),
        AbiStore.layer,
        Layer.succeed(OperatorAbi, { events: [], errors: [], functions: [] }),
        SoleProcess.layer
      ).pipe(Layer.provide(Sqlite.layer({ filename: join(folder, "castellan.sqlite") })), Layer.orDie)
      const running = <A, E>(body: Effect.Effect<A, E, Layer.Success<typeof process>>) =>
        Effect.gen(function* () {
          const wakeUps = yield* WakeUps.make(yield* Journals.all)
          yield* Followers.start
          yield* Effect.provideService(Deliver.start, WakeUps.WakeUps, wakeUps)
          return yield* body
        }).pipe(Effect.scoped, Effect.provide(Layer.fresh(process)))

      const standing = new Map<string, Message["data"]>()
      const sequences: Array<number> = []
      /** Until what the receiver has is this. */
      const has = (...wanted: ReadonlyArray<number>): Effect.Effect<void> =>
        Effect.gen(function* () {
          const now = [...standing.values()].map(({ args }) => Number(args.n))
          if (JSON.stringify(now) === JSON.stringify(wanted)) return
          const message = yield* Queue.take(told)
          // What was sent once more after a restart is told by its number.
          if (!sequences.includes(message.data.sequence)) apply(standing, message)
          sequences.push(message.data.sequence)
          yield* has(...wanted)
        })

      yield* ping(1)
      yield* running(
        Effect.gen(function* () {
          const webhooks = yield* Webhooks
          const { webhookId } = yield* webhooks.add(Make.alice, Redacted.make(url), [], "operator")
          yield* AddWatch.run(caller, {
            webhookId,
            eventDef: "event Ping(uint256 n)",
            contracts: [echo],
            fields: { n: ["1", "2", "3", "4", "5", "6"] },
            rpc: anvil.url,
            fromBlock: "earliest"
          })
          yield* ping(2)
          yield* ping(9)
          yield* has(1, 2)
        })
      )
      const fork = yield* send("evm_snapshot")
      yield* ping(3)
      yield* running(has(1, 2, 3))
      // While nobody looks: the block is taken back, and another one with more upon it is there.
      yield* send("evm_revert", fork)
      yield* ping(4)
      yield* ping(5)
      yield* running(
        Effect.gen(function* () {
          yield* has(1, 2, 4, 5)
          const again = yield* send("evm_snapshot")
          yield* ping(6)
          yield* has(1, 2, 4, 5, 6)
          yield* send("evm_revert", again)
          yield* send("evm_mine")
          yield* send("evm_mine")
          yield* send("evm_mine")
          yield* has(1, 2, 4, 5)
        })
      )
      const numbers = [...new Set(sequences)]
      expect(numbers).toEqual(Array.from({ length: numbers.length }, (_, index) => index + 1))
    }),
  { timeout: 60_000 }
)
