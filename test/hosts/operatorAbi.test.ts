import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "@effect/vitest"
import * as Brand from "effect/Brand"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { AbiCoder, Interface, id } from "ethers"
import * as EventQuery from "../../src/application/chain/logs/EventQuery.js"
import { AbiStore } from "../../src/application/ports/AbiStore.js"
import type { AccountId } from "../../src/application/ports/Tenants.js"
import type { Caller } from "../../src/application/request/Caller.js"
import * as Decoding from "../../src/application/request/Decoding.js"
import * as Event from "../../src/domain/abi/Event.js"
import * as Address from "../../src/domain/primitives/Address.js"
import * as Hex from "../../src/domain/primitives/Hex.js"
import * as Config from "../../src/hosts/config/Config.js"
import * as Wiring from "../../src/hosts/Wiring.js"

const folder = mkdtempSync(join(tmpdir(), "castellan-abi-"))
afterAll(() => rmSync(folder, { recursive: true }))

const configured = (abi: ReadonlyArray<unknown>) =>
  Config.fromText(
    JSON.stringify({
      profile: "development",
      listen: { host: "127.0.0.1", port: 0 },
      database: { path: "abi.sqlite" },
      keyPepper: "a pepper of many bytes",
      accounts: [{ id: "acme", name: "Acme", tier: "pro", keys: [] }],
      networks: [],
      abi
    }),
    "castellan.json",
    {},
    folder
  )

const caller: Caller = {
  principal: {
    accountId: Brand.nominal<AccountId>()("acme"),
    name: "Acme",
    tier: "pro",
    scopes: new Set(["read"]),
    paused: false,
    keyId: null
  },
  requestId: "r"
}

const transfer = {
  topics: [
    id("Transfer(address,address,uint256)"),
    `0x${"1".padStart(64, "0")}`,
    `0x${"2".padStart(64, "0")}`
  ],
  data: AbiCoder.defaultAbiCoder().encode(["uint256"], [7])
}
const log = {
  address: Address.unsafe(`0x${"ab".repeat(20)}`),
  logIndex: 0,
  topics: transfer.topics.map((topic) => Hex.unsafe32(topic)),
  data: Hex.unsafe(transfer.data)
}
const rpc = "http://127.0.0.1:8545"

describe("the operator's definitions", () => {
  it.effect("operator definitions rank after the request's and account's, before built-in ones", () =>
    Effect.gen(function* () {
      const config = Result.getOrThrow(
        configured([
          "event Transfer(address indexed op, address indexed to, uint256 value)",
          "event Rated(uint256 stars)",
          { type: "error", name: "TooFew", inputs: [{ name: "stars", type: "uint256" }] }
        ])
      )
      yield* Effect.gen(function* () {
        const errors = new Interface(["error TooFew(uint256)"])
        const { log: decode, revert } = yield* Decoding.load(caller, undefined)
        expect(decode(log).args).toMatchObject({ op: expect.any(String), value: "7" })
        expect(revert(Hex.unsafe(errors.encodeErrorResult("TooFew", [3])))).toBe("TooFew(stars: 3)")
        const [rated] = yield* EventQuery.filters(caller, { eventName: "Rated", rpc })
        expect(rated?.definition.canonical).toBe("event Rated(uint256 stars)")

        const own = Result.getOrThrow(
          Event.parse("event Transfer(address indexed own, address indexed to, uint256 value)")
        )
        yield* (yield* AbiStore).addEvent(caller.principal.accountId, own)
        const registered = yield* Decoding.load(caller, undefined)
        expect(registered.log(log).eventDef).toBe(own.canonical)
        const asked = "event Transfer(address indexed asked, address indexed to, uint256 value)"
        expect((yield* Decoding.load(caller, [asked])).log(log).eventDef).toBe(asked)

        const all = yield* EventQuery.filters(caller, { eventName: "Transfer", rpc, useABI: [asked] })
        expect(all.map(({ definition }) => definition.inputs[0]?.name)).toEqual([
          "asked",
          "own",
          "op",
          "from",
          "from"
        ])
      }).pipe(Effect.provide(Wiring.layer(config)))
    })
  )

  it("invalid definitions stop the start, and the error names their place", () => {
    const result = configured(["event Rated(uint256 stars)", "event Rated(uint7 stars)"])
    expect(Result.isFailure(result) && result.failure.problems).toEqual([
      { path: "abi[1]", message: expect.stringContaining("uint7") }
    ])
  })
})
