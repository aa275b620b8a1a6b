import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import * as Effect from "effect/Effect"
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from "vitest"
import type * as Journals from "../support/journal/Journals.js"
import * as Campaign from "./support/Campaign.js"
import type { Fault } from "./support/Fault.js"
import * as FaultProxy from "./support/FaultProxy.js"
import * as Killing from "./support/Killing.js"
import * as Receiver from "./support/Receiver.js"
import * as Scenario from "./support/Scenario.js"

describe("a scenario", () => {
  const steps = ["accept", "allocate", "settle"]
  const some = Array.from({ length: 300 }, (_, seed) => Scenario.make(seed, steps))

  it("is the same for the same seed, and another for another one", () => {
    expect(Scenario.make(7, steps)).toEqual(some[7])
    expect(new Set(some.map((scenario) => JSON.stringify({ ...scenario, seed: 0 }))).size).toBe(some.length)
  })

  it("of seeds in a row kills before and after each step of the journal, and each side of sending", () => {
    const first = some.slice(0, 8).map(({ kills: [kill] }) => {
      if (kill?.at === "journal") return `${kill.moment} ${kill.step}`
      return kill?.at === "send" ? `${kill.moment} send` : "none"
    })
    expect(first.sort()).toEqual(
      [...steps, "send"].flatMap((step) => [`after ${step}`, `before ${step}`]).sort()
    )
  })

  it("has, over many seeds, every fault, event, endpoint and way of mining", () => {
    const faults = some.flatMap(({ script }) =>
      Object.values(script)
        .flat()
        .map((fault) => fault?.kind)
    )
    expect(new Set(faults).size).toBe(13)
    expect(new Set(some.flatMap(({ events }) => events.map(({ kind }) => kind))).size).toBe(6)
    expect(new Set(some.flatMap(({ requests }) => requests.map(({ endpoint }) => endpoint))).size).toBe(4)
    const asynchronous = some.flatMap(({ requests }) => requests.filter(({ isAsync }) => isAsync))
    expect(new Set(asynchronous.map(({ endpoint, twin }) => `${endpoint} ${twin}`)).size).toBe(8)
    expect(new Set(some.map(({ mining }) => mining.mode)).size).toBe(3)
  })

  it("has, over many seeds, every store, outage, EntryPoint, bundler and node, one process and two", () => {
    const all = (of: (scenario: Scenario.Scenario) => unknown) => new Set(some.map(of))
    expect(all(({ store }) => store).size).toBe(2)
    expect(all(({ version }) => version).size).toBe(3)
    expect(all(({ remote }) => remote).size).toBe(2)
    expect(all(({ nodeReplacedAt }) => nodeReplacedAt === null).size).toBe(2)
    expect(all(({ impulses }) => [...new Set(impulses.map(({ what }) => what))].sort().join()).size).toBe(4)
    expect(all(({ others, store }) => `${store} ${others.length}`)).toEqual(
      new Set(["sqlite 0", "postgres 0", "postgres 1"])
    )
    expect(
      new Set(some.flatMap(({ outages, store }) => outages.map(({ how }) => `${store} ${how}`)))
    ).toEqual(new Set(["sqlite locked", "postgres refuses", "postgres hangs"]))
  })

  it("takes blocks back that are deeper than what is settled only where it gives their transactions back", () => {
    const reorgs = some.flatMap(({ events, settledDepth }) =>
      events.flatMap((event) =>
        event.kind === "reorg" && event.depth >= settledDepth ? [event.returned] : []
      )
    )
    expect(new Set(reorgs)).toEqual(new Set([true]))
  })

  it("lets an operation come only from a wallet of its request's signer", () => {
    for (const { requests, signers, wallets } of some)
      for (const { ops, signer } of requests)
        for (const { wallet } of ops) {
          expect(wallet).toBeLessThan(wallets)
          expect(wallet % signers).toBe(signer)
        }
  })
})

describe("a journal that kills its process", () => {
  afterEach(() => {
    vi.restoreAllMocks()
    process.removeAllListeners(Killing.armSignal)
  })

  const told: Array<string> = []
  const journal = (names: ReadonlyArray<string>) =>
    Object.fromEntries(
      names.map((name) => [name, () => Effect.sync(() => void told.push(name))])
    ) as unknown as Journals.Methods

  const callOf = (wrapped: Journals.Methods, step: string): Effect.Effect<unknown> => {
    const methods = wrapped as unknown as Readonly<Record<string, () => Effect.Effect<unknown>>>
    return Effect.suspend(() => methods[step]?.() ?? Effect.dieMessage(`no method ${step}`))
  }

  it.each(["before", "after"] as const)(
    "does so %s the call that it is told, whatever its methods are",
    async (moment) => {
      const kill = vi.spyOn(process, "kill").mockImplementation(() => {
        told.push("killed")
        return true
      })
      const names = await Campaign.steps
      expect(names).toContain("recordSigned")
      for (const step of names) {
        told.length = 0
        const wrapped = Killing.wrap({ step, moment, nth: 2, armed: true })(journal(names))
        const call = callOf(wrapped, step)
        await Effect.runPromise(Effect.zipRight(call, call))
        expect(told).toEqual(moment === "before" ? [step, "killed", step] : [step, step, "killed"])
      }
      expect(kill).toHaveBeenCalledWith(process.pid, "SIGKILL")
    }
  )

  it("does nothing until it is armed", async () => {
    const kill = vi.spyOn(process, "kill").mockImplementation(() => true)
    const wrapped = Killing.wrap({ step: null, moment: "before", nth: 1, armed: false })(journal(["accept"]))
    const call = callOf(wrapped, "accept")
    await Effect.runPromise(call)
    expect(kill).not.toHaveBeenCalled()
    process.emit(Killing.armSignal)
    await Effect.runPromise(call)
    expect(kill).toHaveBeenCalledOnce()
  })
})

describe("a failing node", () => {
  let proxy: FaultProxy.FaultProxy
  let asked = 0
  const node = createServer(async (request, response) => {
    let body = ""
    for await (const part of request) body += part
    asked += 1
    const answer = ({ id, method }: { id: number; method: string }) => ({
      jsonrpc: "2.0",
      id,
      result:
        method === "eth_blockNumber"
          ? "0xa"
          : method === "eth_getTransactionReceipt"
            ? { blockNumber: "0xa" }
            : method
    })
    const calls = JSON.parse(body)
    response.end(JSON.stringify(Array.isArray(calls) ? calls.map(answer) : answer(calls)))
  })
  beforeAll(async () => {
    await new Promise<void>((resolve) => node.listen(0, "127.0.0.1", resolve))
    proxy = await FaultProxy.start(`http://127.0.0.1:${(node.address() as AddressInfo).port}`)
  })
  afterAll(async () => {
    await proxy.stop()
    await new Promise((resolve) => node.close(resolve))
  })

  const post = async (...methods: ReadonlyArray<string>) => {
    const calls = methods.map((method, id) => ({ jsonrpc: "2.0", id, method, params: [] }))
    const body = JSON.stringify(calls.length === 1 ? calls[0] : calls)
    const answer = await fetch(proxy.url, { method: "POST", body, signal: AbortSignal.timeout(500) })
    return { status: answer.status, headers: answer.headers, text: await answer.text() }
  }
  const meets = (fault: Fault) => proxy.play({ send: [fault], poll: [fault], read: [fault] })
  const batch = ["eth_chainId", "eth_gasPrice"]

  it("loses the question, or the answer", async () => {
    for (const [kind, heard] of [
      ["cut before", 0],
      ["cut after", 1],
      ["silence", 1]
    ] as const) {
      meets({ kind })
      asked = 0
      await expect(post("eth_sendRawTransaction")).rejects.toThrow()
      expect(asked).toBe(heard)
      expect((await post("eth_sendRawTransaction")).status).toBe(200)
    }
  })

  it("limits the rate for a while", async () => {
    meets({ kind: "429", burst: 2, retryAfter: 1 })
    const answers = [await post("eth_chainId"), await post("eth_chainId"), await post("eth_chainId")]
    expect(answers.map(({ status }) => status)).toEqual([429, 429, 200])
    expect(answers[0]?.headers.get("retry-after")).toBe("1")
  })

  it("answers with an error, whether it took the transaction or not", async () => {
    for (const forwarded of [true, false]) {
      meets({ kind: "wrong error", forwarded, code: -32603, message: "nonce too low" })
      asked = 0
      expect(JSON.parse((await post("eth_sendRawTransaction")).text)).toMatchObject({
        error: { code: -32603, message: "nonce too low" }
      })
      expect(asked).toBe(forwarded ? 1 : 0)
    }
  })

  it("answers too much, too little, in another order, or nonsense", async () => {
    const ids = async (kind: "duplicated answer" | "left out answer" | "reordered answers") => {
      meets({ kind })
      const answers: ReadonlyArray<{ readonly id: number }> = JSON.parse((await post(...batch)).text)
      return answers.map(({ id }) => id)
    }
    expect(await ids("duplicated answer")).toEqual([0, 1, 0])
    expect(await ids("left out answer")).toEqual([1])
    expect(await ids("reordered answers")).toEqual([1, 0])
    meets({ kind: "garbage" })
    expect((await post("eth_chainId")).text).toContain("<html>")
    meets({ kind: "gateway", status: 503 })
    expect((await post("eth_chainId")).status).toBe(503)
  })

  it("lives in the past", async () => {
    meets({ kind: "stale", exchanges: 2, blocks: 3 })
    const answers = JSON.parse((await post("eth_blockNumber", "eth_getTransactionReceipt")).text)
    expect(answers).toMatchObject([{ result: "0x7" }, { result: null }])
    await post("eth_blockNumber")
    expect(JSON.parse((await post("eth_blockNumber")).text)).toMatchObject({ result: "0xa" })
  })

  it("tells of transactions before and after the real node knows them", async () => {
    const told: Array<string> = []
    proxy.play({ send: [], poll: [], read: [] }, (moment) => told.push(`${moment} ${asked}`))
    asked = 0
    await post("eth_sendRawTransaction")
    await post("eth_chainId")
    expect(told).toEqual(["before 0", "after 1"])
  })
})

describe("what webhooks were told", () => {
  const told = (sequence: number, kind: string, data = "{}") => ({ requestId: "r1", sequence, kind, data })
  const [one, two, three] = [told(1, "accepted"), told(2, "submitted", '{"txHash":"0x1"}'), told(3, "final")]
  const judged = (...arrivals: ReadonlyArray<Receiver.Told>) =>
    Receiver.judge(
      [one, two, three],
      ["r1"],
      arrivals.map((each) => ({ ...each, isTaken: true }))
    )

  it("is right with each event once or more, each after the one before it", () => {
    expect(judged(one, one, two, one, three)).toEqual({ undelivered: [], outOfOrder: [], invented: [] })
  })

  it("is wrong with an event that is missing, that overtook another, or that never was", () => {
    expect(judged(one).undelivered).toEqual(["r1 2 submitted", "r1 3 final", "the end of r1"])
    expect(judged(two, one, three).outOfOrder).toEqual(["r1 2 submitted after 0"])
    const other = told(2, "submitted", '{"txHash":"0x2"}')
    expect(judged(one, other, two, three).invented).toEqual(["r1 2 submitted"])
    expect(judged(one, two, three, told(4, "reopened")).invented).toEqual(["r1 4 reopened"])
    const included = told(2, "included", '{"elements":[0,1]}')
    const sooner = (elements: string) =>
      Receiver.judge([told(1, "submitted", `{"elements":${elements}}`), included], [], []).outOfOrder
    expect(sooner("[1]")).toEqual(["r1 2 included before submitted"])
    expect(sooner("[0,1]")).toEqual([])
  })
})
