import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as EoaNonces from "../../../src/application/chain/EoaNonces.js"
import type { BlockTag, ChainClient } from "../../../src/application/ports/chain/ChainRpc.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import { test } from "../../support/Test.js"

const eoa = Address.unsafe(`0x${"0e".repeat(20)}`)

const node = (said: { latest: bigint; pending: bigint }) =>
  Effect.map(Monitor.node("any"), ({ chain }) => {
    const asked: Array<BlockTag> = []
    const client: ChainClient = {
      ...chain,
      transactionCount: (_, tag) =>
        Effect.sync(() => {
          asked.push(tag)
          return tag === "latest" ? said.latest : said.pending
        })
    }
    return { client, asked, take: () => asked.splice(0) }
  })

describe("the nonces of an EOA", () => {
  test("cost one query once the one at the latest block is known", function* () {
    const said = { latest: 5n, pending: 7n }
    const { client, take } = yield* node(said)
    const read = EoaNonces.make()
    expect(yield* read(client, eoa)).toEqual({ latest: 5n, next: 7n })
    expect(take()).toEqual(["latest", "pending"])
    said.pending = 9n
    expect(yield* read(client, eoa)).toEqual({ latest: 5n, next: 9n })
    expect(take()).toEqual(["pending"])
  })

  test("are both queried when the pending one is below the known one, or too far above", function* () {
    const said = { latest: 5n, pending: 7n }
    const { client, take } = yield* node(said)
    const read = EoaNonces.make()
    yield* read(client, eoa)
    take()
    Object.assign(said, { latest: 3n, pending: 4n })
    expect(yield* read(client, eoa)).toEqual({ latest: 3n, next: 4n })
    expect(take()).toEqual(["pending", "latest"])
    Object.assign(said, { latest: 3n, pending: 4n + EoaNonces.mostAhead })
    expect(yield* read(client, eoa)).toEqual({ latest: 3n, next: 4n + EoaNonces.mostAhead })
    expect(take()).toEqual(["pending", "latest"])
  })

  test("are never below the one at the latest block", function* () {
    const { client } = yield* node({ latest: 8n, pending: 6n })
    expect(yield* EoaNonces.make()(client, eoa)).toEqual({ latest: 8n, next: 8n })
  })

  test("are this node's own, whatever another node reported", function* () {
    const read = EoaNonces.make()
    const one = yield* node({ latest: 8n, pending: 8n })
    const other = yield* node({ latest: 2n, pending: 2n })
    yield* read(one.client, eoa)
    expect(yield* read(other.client, eoa)).toEqual({ latest: 2n, next: 2n })
  })
})
