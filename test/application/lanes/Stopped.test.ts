import { Context, Effect, Exit, Fiber, Scope } from "effect"
import { describe, expect } from "vitest"
import * as InFlight from "../../../src/application/lanes/InFlight.js"
import * as LaneSlot from "../../../src/application/lanes/LaneSlot.js"
import * as NonceManager from "../../../src/application/lanes/NonceManager.js"
import * as SelfBundler from "../../../src/application/lanes/SelfBundler.js"
import * as TransactionMonitor from "../../../src/application/lanes/TransactionMonitor.js"
import type { Bundle } from "../../../src/application/ports/chain/Bundler.js"
import { ChainRpcError } from "../../../src/application/ports/chain/ChainRpc.js"
import { RequestJournal } from "../../../src/application/ports/journal/RequestJournal.js"
import { TransactionJournal } from "../../../src/application/ports/journal/TransactionJournal.js"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as Percent from "../../../src/domain/erc4337/Percent.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as InMemory from "../../support/journal/InMemory.js"
import * as Make from "../../support/journal/Make.js"
import * as Monitor from "../../support/lanes/Monitor.js"
import * as Ops from "../../support/lanes/Ops.js"
import * as Parties from "../../support/Parties.js"
import * as StoppedAt from "../../support/StoppedAt.js"
import { test } from "../../support/Test.js"
import * as Time from "../../support/Time.js"

const submitter = Parties.signer(1)
const lane = { chainId: Make.chainId, signer: submitter.address }
const entryPoint = EntryPoint.canonical["v0.7"]
const userOpHash = Make.word(0x0b)

/** A journal that has accepted an op, and the node of its lane. */
const world = Effect.gen(function* () {
  const journals = yield* InMemory.makeJournal
  const intent = Make.op({ space: Make.space(1, { authority: submitter.address, entryPoint }), userOpHash })
  yield* Context.get(journals, RequestJournal).acceptOps(Make.acceptance("r1", [intent]))
  const node = yield* Monitor.node("any")
  const chain = {
    ...node.chain,
    simulate: () =>
      Effect.fail(new ChainRpcError({ reason: "unsupported", origin: "any", message: "no such method" })),
    call: () => Effect.succeed({ success: true, data: Hex.empty }),
    balance: () => Effect.succeed(10n ** 18n)
  }
  return { chain, journal: Context.get(journals, TransactionJournal), node }
})

/** A life of the process, in which the op is to be submitted. */
const life = ({ chain, journal }: Effect.Success<typeof world>) =>
  Effect.gen(function* () {
    const scope = yield* Scope.fork(yield* Effect.scope)
    const inFlight = InFlight.make()
    const lanes = NonceManager.make(journal)
    const monitor = yield* TransactionMonitor.make({
      settlement: {
        submitted: () => Effect.void,
        mined: () => Effect.void,
        finalised: () => Effect.void,
        vanished: () => Effect.void,
        stranded: () => Effect.succeed(true)
      },
      inFlight,
      attend: () => Effect.void,
      accessNodes: { ofOperator: () => Effect.succeed(chain), ofCaller: () => Effect.succeed(chain) }
    }).pipe(Scope.provide(scope))
    const bundler = SelfBundler.make({
      inFlight,
      lanes,
      slots: LaneSlot.make(lanes, inFlight),
      monitor,
      scope
    })
    const bundle: Bundle = {
      requestId: "r1",
      chain,
      profile: Monitor.profile,
      access: Monitor.callers,
      version: "v0.7",
      entryPoint,
      ops: [{ index: 0, userOpHash, op: Ops.plain }],
      aggregate: null,
      alone: false,
      submitter,
      prices: { maxFeePerGas: 100n, maxPriorityFeePerGas: 10n, legacy: false },
      l1Fee: 0n,
      gasBound: 1_000_000n,
      gasOvershoot: Percent.zero
    }
    return { monitor, scope, submit: Effect.exit(bundler.submit(bundle)) }
  })

describe("an op whose process stops at any moment of its submission", () => {
  test("is signed once, and nobody has bytes that are not stored", function* () {
    for (let step = 1; step <= 250; step++) {
      const own = yield* world
      const bytes = Effect.map(own.journal.openOf(lane), (open) =>
        open.map(({ nonce, versions }) => [nonce, ...versions.map(({ raw }) => raw)])
      )
      const { scope, submit } = yield* life(own)
      // Who waits for it is of the engine, and told by nobody else.
      const waiting = Effect.flatMap(Effect.forkIn(submit, scope), Fiber.await)
      const ended = yield* StoppedAt.step(step, waiting, scope)
      const before = yield* bytes
      expect([step, ended, before.length <= 1]).toEqual([step, true, true])
      for (const given of own.node.given) expect([step, before.flat()]).toEqual([step, [0n, given]])
      const next = yield* life(own)
      const [left] = yield* own.journal.openOf(lane)
      if (left === undefined) yield* next.submit
      else yield* next.monitor.watch({ chain: own.chain, profile: Monitor.profile, record: left })
      yield* Time.settle
      const after = yield* bytes
      expect([step, after]).toEqual([step, [[0n, own.node.given[0]]]])
      expect([step, new Set(own.node.given).size]).toEqual([step, 1])
      yield* Scope.close(next.scope, Exit.void)
    }
  })
})
