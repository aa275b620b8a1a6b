import { expect } from "@effect/vitest"
import { Effect, Layer, Logger, Redacted, References } from "effect"
import * as Balances from "../../../src/application/observe/Balances.js"
import { type ChainClient, ChainRpc } from "../../../src/application/ports/chain/ChainRpc.js"
import * as NetworkProfile from "../../../src/application/ports/NetworkProfile.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import { test } from "../../support/Test.js"

const address = (digit: string) => Address.unsafe(`0x${digit.repeat(40)}`)
const [submitter, other] = [address("1"), address("2")]
const network = (chainId: bigint) => ({
  profile: NetworkProfile.make({ chainId, rpc: Redacted.make("http://node.example") }),
  least: 10n
})

test("an EOA that runs low is told once, where it submits, and again when it has recovered in between", function* () {
  let balance = 3n
  const told: Array<unknown> = []
  const nodes = Layer.succeed(ChainRpc, {
    connect: () =>
      Effect.succeed({ balance: () => Effect.sync(() => balance) } as Partial<ChainClient> as ChainClient)
  })
  const logger = Logger.layer([
    Logger.make(({ fiber }) => {
      told.push(
        ["chainId", "address"].map((name) => fiber.getRef(References.CurrentLogAnnotations)[name] ?? null)
      )
    })
  ])
  const balances = Balances.make([network(1n), network(2n)])
  yield* balances.register(other)
  yield* balances.submits(2n, submitter)
  const check = balances.check.pipe(Effect.provide(nodes), Effect.provide(logger))
  yield* check
  yield* check
  expect(told).toEqual([["2", submitter]])
  balance = 10n
  yield* check
  balance = 9n
  yield* check
  expect(told).toEqual([
    ["2", submitter],
    ["2", submitter]
  ])
})
