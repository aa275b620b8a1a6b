import { describe, expect } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Metric from "effect/Metric"
import * as Queue from "../../../../src/application/lanes/worker/rules/Queue.js"
import * as Metrics from "../../../../src/application/observe/Metrics.js"
import { ChainRpcError } from "../../../../src/application/ports/chain/ChainRpc.js"
import { SignerError } from "../../../../src/application/ports/Signers.js"
import type { Hex } from "../../../../src/domain/primitives/Hex.js"
import * as Make from "../../../support/journal/Make.js"
import * as Log from "../../../support/Log.js"
import { test } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"
import * as Rows from "../../../support/worker/Rows.js"
import * as World from "../../../support/worker/World.js"

const gwei = 10n ** 9n

const accept = (world: World.World, count: number) => {
  for (let opId = 1; opId <= count; opId += 1) world.accept(opId)
}
const walletOf = ({ rows }: World.World, opId: number) => rows.ops.get(opId)?.space.wallet ?? Make.address(0)
const codes = ({ rows }: World.World) =>
  [...rows.failed].map(([requestId, [first]]) => `${requestId} ${first?.code}: ${first?.message}`)
const landed = ({ rows }: World.World) => rows.all("settled").length

describe("a lane's worker", () => {
  test("brings one op into a separate transaction", function* () {
    const world = yield* World.make()
    accept(world, 1)
    yield* world.wake
    yield* Time.settle
    expect(world.bundles()).toEqual([1])
    expect(world.rows.ops.get(1)).toMatchObject({ state: "sent", exposed: true })
    expect(world.pool.map(({ nonce, ops }) => [nonce, ops[0]?.userOpHash])).toEqual([
      [0n, world.rows.ops.get(1)?.userOpHash]
    ])
  })

  test("reports a lasting obstacle once, and its end", function* () {
    const lines = yield* Log.listen
    const stranded = Effect.map(Metric.value(Metrics.workStranded), ({ value }) => value)
    const world = yield* World.make()
    accept(world, 3)
    world.node.error = new ChainRpcError({ reason: "unreachable", origin: "http://node", message: "away" })
    yield* world.wake
    yield* Time.adjust(1_000)
    expect([yield* stranded, lines.length]).toEqual([0, 0])
    yield* Time.adjust(30_000)
    expect(yield* stranded).toBeGreaterThan(0)
    expect(lines.map(({ level }) => level)).toEqual(["WARN"])
    world.node.error = null
    yield* Time.adjust(60_000)
    expect(world.bundles()).toEqual([3])
    expect([yield* stranded, lines.map(({ level }) => level)]).toEqual([0, ["WARN", "INFO"]])
  })

  test("explains a request's delay without node URLs or the lacks of a shared EOA", function* () {
    const world = yield* World.make()
    accept(world, 1)
    world.rows.put({ ...world.accept(2), key: "serviceEoa" })
    const delays = () => ["r1", "r2", "r3"].map((requestId) => world.worker.delayOf(Make.lane, requestId))
    const origin = "http://10.0.0.7:8545"
    world.node.error = new ChainRpcError({ reason: "unreachable", origin, message: `${origin}: away` })
    yield* world.wake
    yield* Time.settle
    expect(delays()).toEqual(["the RPC endpoint: away", "the RPC endpoint: away", null])
    world.node.error = null
    world.node.balance = 0n
    yield* Time.adjust(10_000)
    expect(delays()).toEqual([
      expect.stringMatching(/^the EOA lacks money/),
      "the service's EOA sends nothing at the moment",
      null
    ])
    world.node.balance = Make.plenty
    yield* Time.adjust(60_000)
    expect(delays()).toEqual([null, null, null])
  })

  test("opens a large request in slices, only as far as it has room", function* () {
    const world = yield* World.make()
    const left = Array.from({ length: 3_000 }, (_, index) => index)
    world.unopened.set("payout", { left, dueAt: null })
    yield* world.worker.wake(Make.lane, true)
    yield* Time.adjust(10_000)
    const open = world.rows.all("accepted").length + world.rows.all("sent").length
    expect(open).toBeLessThan(1_800)
    for (let block = 0; block < 40; block += 1) {
      yield* Time.adjust(2_000)
      yield* world.mine
    }
    yield* Time.settle
    expect([landed(world), world.unopened.get("payout")?.left.length]).toEqual([3_000, 0])
    expect(Math.max(...world.bundles())).toBeLessThanOrEqual(Queue.bundle)
  })

  test("opens waiting elements when they are due, and rarely asks for them before", function* () {
    const world = yield* World.make()
    world.unopened.set("later", { left: [0], dueAt: 3_600_000 })
    yield* world.worker.wake(Make.lane, true)
    yield* Time.adjust(3_500_000)
    expect([world.bundles(), world.looks()]).toEqual([[], expect.closeTo(120, -1)])
    yield* Time.adjust(101_000)
    expect(world.bundles()).toEqual([1])
  })

  test("opens nothing while its node returns errors, and continues afterwards", function* () {
    const world = yield* World.make()
    world.unopened.set("payout", { left: [0, 1, 2], dueAt: null })
    world.node.error = new ChainRpcError({ reason: "rejected", origin: "http://node", message: "no" })
    yield* world.worker.wake(Make.lane, true)
    for (let second = 0; second < 600; second += 10) yield* Time.adjust(10_000)
    expect(world.looks()).toBeLessThan(100)
    world.node.error = null
    yield* Time.adjust(30_000)
    expect(world.bundles()).toEqual([3])
  })

  test("opens nothing while a nonce of its EOA is unknown", function* () {
    const world = yield* World.make()
    world.unopened.set("payout", { left: [0], dueAt: null })
    world.foreign.add(0n)
    world.ours.add(0n)
    yield* world.worker.wake(Make.lane, true)
    yield* Time.adjust(60_000)
    expect(world.rows.all("accepted")).toEqual([])
    yield* world.mine
    yield* Time.adjust(500_000)
    expect(world.rows.all("accepted")).toEqual([])
    yield* Time.adjust(200_000)
    expect(world.bundles()).toEqual([1])
  })

  test("brings forty ops into one transaction", function* () {
    const world = yield* World.make()
    accept(world, 40)
    yield* world.wake
    yield* Time.settle
    expect(world.bundles()).toEqual([40])
    yield* world.mine
    expect(landed(world)).toBe(40)
  })

  test("brings ops accepted in neighbouring turns of the event loop into one transaction", function* () {
    const world = yield* World.make()
    world.accept(1)
    yield* world.wake
    yield* Effect.promise(() => new Promise<void>((done) => setImmediate(done)))
    world.accept(2)
    yield* world.wake
    yield* Time.settle
    expect(world.bundles()).toEqual([2])
  })

  test("takes ops accepted meanwhile into the next transaction", function* () {
    const world = yield* World.make()
    accept(world, 1)
    yield* world.wake
    yield* Time.settle
    world.accept(2)
    world.accept(3)
    yield* world.wake
    yield* Time.settle
    expect(world.bundles()).toEqual([1, 2])
  })

  test("fails an op for its own failure, and none for its company", function* () {
    const world = yield* World.make()
    accept(world, 40)
    world.blames.set(walletOf(world, 7), "AA23 reverted")
    yield* world.wake
    yield* Time.settle
    yield* world.mine
    expect(codes(world)).toEqual(["r7 execution_failed: AA23 reverted"])
    expect(landed(world)).toBe(39)
    expect(world.told).toContain("r7")
  })

  test("finds the op that reverts a bundle without being named", function* () {
    const world = yield* World.make()
    accept(world, 40)
    world.poison.add(walletOf(world, 23))
    yield* world.wake
    for (let block = 0; block < 8; block += 1) {
      yield* Time.adjust(1_000)
      yield* world.mine
    }
    yield* Time.settle
    expect([...world.rows.failed.keys()]).toEqual(["r23"])
    expect(landed(world)).toBe(39)
  })

  test("fails the dependants of a rejected op with it", function* () {
    const world = yield* World.make()
    const request = { requestId: "chain" }
    world.accept(1, { prepared: { ...request, index: 0 } })
    world.accept(2, { prepared: { ...request, index: 1, dependsOn: [0] } })
    world.accept(3, { prepared: { ...request, index: 2, dependsOn: [1] } })
    world.accept(4)
    world.blames.set(walletOf(world, 2), "AA23 reverted")
    yield* world.wake
    yield* Time.settle
    yield* world.mine
    expect(world.rows.failed.get("chain")?.map(({ code, index }) => [index, code])).toEqual([
      [1, "execution_failed"],
      [2, "dependency_failed"]
    ])
    expect(world.rows.all("settled").map(({ opId }) => opId)).toEqual([1, 4])
  })

  test("moves later ops of a rejected op's key up", function* () {
    const world = yield* World.make()
    const wallet = Make.address(0x77)
    for (const sequence of [0n, 1n, 2n]) world.accept(Number(sequence) + 1, { wallet, sequence })
    world.signer.sign = (opId) =>
      opId === 1
        ? Effect.fail(new SignerError({ reason: "refused", message: "no" }))
        : Effect.succeed(`0x${"11".repeat(64)}1b` as Hex)
    yield* world.wake
    yield* Time.settle
    yield* world.mine
    expect(codes(world)).toHaveLength(1)
    expect(world.rows.all("settled").map(({ opId, sequence }) => [opId, sequence])).toEqual([
      [2, 0n],
      [3, 1n]
    ])
  })

  test("continues without a signature that takes longer than two seconds, and sends its op later", function* () {
    const world = yield* World.make()
    accept(world, 3)
    const came = yield* Deferred.make<Hex>()
    const { sign } = world.signer
    world.signer.sign = (opId) => (opId === 2 ? Deferred.await(came) : sign(opId))
    yield* world.wake
    yield* Time.adjust(1_900)
    expect(world.bundles()).toEqual([])
    yield* Time.adjust(200)
    expect(world.bundles()).toEqual([2])
    yield* Time.adjust(600_000)
    expect(codes(world)).toEqual([])
    yield* Deferred.succeed(came, `0x${"11".repeat(64)}1b` as Hex)
    yield* Time.settle
    expect(world.bundles()).toEqual([2, 1])
  })

  test("waits for a signer that is away, at growing intervals", function* () {
    const world = yield* World.make()
    accept(world, 1)
    let asked = 0
    const { sign } = world.signer
    const away = Effect.fail(new SignerError({ reason: "unavailable", message: "away" }))
    world.signer.sign = () =>
      Effect.suspend(() => {
        asked += 1
        return away
      })
    yield* world.wake
    yield* Time.adjust(100)
    expect(asked).toBe(2)
    for (let second = 0; second < 600; second += 10) yield* Time.adjust(10_000)
    expect(asked).toBeLessThan(40)
    world.signer.sign = sign
    yield* Time.adjust(30_000)
    expect(world.bundles()).toEqual([1])
    expect(codes(world)).toEqual([])
  })

  test("waits for a node that returns errors, and fails nothing", function* () {
    const world = yield* World.make()
    accept(world, 5)
    world.node.error = new ChainRpcError({ reason: "rejected", origin: "http://node", message: "no" })
    yield* world.wake
    for (let second = 0; second < 600; second += 10) yield* Time.adjust(10_000)
    expect(world.node.asked).toBeLessThan(400)
    expect([world.bundles(), codes(world)]).toEqual([[], []])
    world.node.error = null
    yield* Time.adjust(30_000)
    expect(world.bundles()).toEqual([5])
  })

  test("makes smaller bundles of ops that its EOA cannot pay together, and waits for money", function* () {
    const world = yield* World.make()
    accept(world, 4)
    world.node.balance = 0n
    yield* world.wake
    yield* Time.adjust(60_000)
    expect([world.bundles(), codes(world)]).toEqual([[], []])
    world.node.balance = Make.plenty
    yield* Time.adjust(30_000)
    yield* world.mine
    yield* Time.settle
    yield* world.mine
    expect(landed(world)).toBe(4)
  })

  test("discards a transaction with an abandoned op, and sends the others", function* () {
    const world = yield* World.make()
    accept(world, 3)
    const { sign } = world.signer
    world.signer.sign = (opId) =>
      Effect.tap(sign(opId), () =>
        Effect.sync(() => {
          const op = world.rows.ops.get(2)
          if (op?.state === "accepted") world.rows.put({ ...op, state: "abandoned" })
        })
      )
    yield* world.wake
    yield* Time.settle
    expect(world.bundles()).toEqual([2])
  })

  test("continues when the reply of a record is lost", function* () {
    const world = yield* World.make()
    accept(world, 2)
    world.rows.faults.after = Rows.away
    yield* world.wake
    yield* Time.settle
    expect(world.bundles()).toEqual([2])
    expect(world.pool).toHaveLength(1)
  })

  test("retries a transaction that was not recorded", function* () {
    const world = yield* World.make()
    accept(world, 2)
    world.rows.faults.before = Rows.away
    yield* world.wake
    yield* Time.settle
    expect(world.pool).toHaveLength(0)
    yield* Time.adjust(1_000)
    expect(world.pool.map(({ nonce }) => nonce)).toEqual([0n])
    expect(world.bundles()).toEqual([2])
  })

  test("leaves a lane that another process has claimed", function* () {
    const world = yield* World.make()
    accept(world, 2)
    world.rows.faults.before = Rows.lost
    yield* world.wake
    yield* Time.settle
    yield* Time.adjust(60_000)
    expect([world.pool.length, world.bundles()]).toEqual([0, []])
  })

  test("changes nothing with work begun before another process had the lane", function* () {
    const world = yield* World.make()
    const { signTransaction } = world.signer
    accept(world, 2)
    world.signer.signTransaction = Effect.tap(signTransaction, () =>
      Effect.sync(() => {
        world.rows.claim.epoch += 2
      })
    )
    yield* world.wake
    yield* Time.settle
    expect([world.pool.length, world.bundles()]).toEqual([0, []])
    world.signer.signTransaction = signTransaction
    yield* world.wake
    yield* Time.settle
    expect(world.bundles()).toEqual([2])
  })

  test("has at most as many transactions in flight as the operator allows", function* () {
    const world = yield* World.make({ profile: { maxInFlight: 2 } })
    for (let opId = 1; opId <= 3; opId += 1) {
      world.accept(opId)
      yield* world.wake
      yield* Time.settle
    }
    expect(world.bundles()).toEqual([1, 1])
    yield* world.mine
    yield* Time.settle
    expect(world.bundles()).toEqual([1, 1, 1])
  })

  test("sends 5,000 ops left by an earlier process, and holds at most two bundles of them", function* () {
    const world = yield* World.make()
    accept(world, 5_000)
    yield* world.wake
    for (let block = 0; block < 60 && landed(world) < 5_000; block += 1) {
      yield* Time.settle
      yield* world.mine
    }
    expect(landed(world)).toBe(5_000)
    expect(Math.max(...world.rows.reads)).toBeLessThanOrEqual(Queue.rows)
    expect(world.rows.reads.length).toBeLessThan(5_000 / Queue.bundle + 60)
    const nonces = [...world.rows.transactions.keys()]
    expect(nonces).toEqual(nonces.map((_, at) => BigInt(at)))
  })

  test("signs no unexposed op while a nonce of its EOA is unknown", function* () {
    const world = yield* World.make()
    accept(world, 2)
    world.foreign.add(0n)
    yield* world.wake
    yield* Time.adjust(60_000)
    expect(world.bundles()).toEqual([])
    yield* world.mine
    yield* Time.adjust(30_000)
    expect([...world.rows.transactions].map(([nonce, { ops }]) => [nonce, ops.length])).toEqual([[1n, 2]])
    expect(codes(world)).toEqual([])
  })

  test("signs exposed ops while a nonce of its EOA is unknown", function* () {
    const world = yield* World.make()
    world.rows.put({ ...world.accept(1), exposed: true })
    world.accept(2)
    world.foreign.add(0n)
    yield* world.wake
    yield* Time.adjust(60_000)
    expect([...world.rows.transactions.values()].map(({ ops }) => ops.map(({ opId }) => opId))).toEqual([[1]])
  })

  test("looks up exposed unsigned ops together", function* () {
    const world = yield* World.make()
    for (let opId = 1; opId <= 64; opId += 1) {
      world.rows.put({ ...world.accept(opId), exposed: true })
      world.silent.add(opId)
    }
    yield* world.wake
    yield* Time.adjust(3_000)
    expect(world.lookUps.most).toBe(64)
  })

  test("rejects nothing while bytes that the journal lost may land", function* () {
    const world = yield* World.make()
    // From before the claim.
    for (const opId of [1, 2]) world.rows.put({ ...world.accept(opId), acceptedAt: -1 })
    world.blames.set(walletOf(world, 1), "AA23 reverted")
    world.foreign.add(0n)
    world.ours.add(0n)
    yield* world.mine
    yield* world.wake
    for (let second = 0; second < 590; second += 10) yield* Time.adjust(10_000)
    expect(codes(world)).toEqual([])
    expect(world.bundles()).toEqual([1])
    for (let second = 0; second < 60; second += 10) yield* Time.adjust(10_000)
    expect(codes(world)).toEqual(["r1 execution_failed: AA23 reverted"])
  })

  test("sends no held op after reading lost transactions, since the journal may hold it back", function* () {
    const world = yield* World.make()
    accept(world, 2)
    yield* world.wake
    yield* Time.settle
    world.accept(3)
    world.accept(4)
    world.foreign.add(1n)
    world.ours.add(1n)
    yield* world.mine
    world.past.done.add(3)
    yield* world.wake
    yield* Time.adjust(60_000)
    expect([...world.rows.transactions.values()].map(({ ops }) => ops.map(({ opId }) => opId))).toEqual([
      [1, 2],
      [4]
    ])
  })

  test("rejects ops accepted since the claim, whatever lost transactions it has read", function* () {
    const world = yield* World.make()
    accept(world, 1)
    world.foreign.add(0n)
    world.ours.add(0n)
    yield* world.mine
    yield* world.wake
    yield* Time.adjust(10_000)
    world.rows.put({ ...world.accept(2), acceptedAt: 10_000 })
    world.blames.set(walletOf(world, 2), "AA23 reverted")
    yield* world.wake
    yield* Time.settle
    expect(codes(world)).toEqual(["r2 execution_failed: AA23 reverted"])
  })

  test("sends an op that a mined transaction lacked separately, and abandons it after three", function* () {
    const world = yield* World.make()
    accept(world, 3)
    world.lacked.add(2)
    yield* world.wake
    for (let block = 0; block < 6; block += 1) {
      yield* Time.settle
      yield* world.mine
    }
    yield* Time.settle
    expect(world.bundles()).toEqual([3, 1, 1])
    expect([...world.rows.failed.keys()]).toEqual(["r2"])
    expect(landed(world)).toBe(2)
  })

  test("expires only work that was not exposed in time", function* () {
    const world = yield* World.make({ profile: { requestExpiryMillis: 60_000 } })
    accept(world, 2)
    world.rows.put({ ...world.accept(3), exposed: true })
    // A repricing request signs other requests' transactions.
    world.rows.put({ ...world.accept(4), endpoint: "/unstuck" })
    world.expiry.isOn = true
    const { sign } = world.signer
    const away = Effect.fail(new SignerError({ reason: "unavailable", message: "away" }))
    world.signer.sign = () => away
    yield* world.wake
    for (let second = 0; second < 60; second += 5) yield* Time.adjust(5_000)
    expect(world.rows.all("accepted")).toHaveLength(4)
    for (let second = 0; second < 60; second += 5) yield* Time.adjust(5_000)
    expect(world.rows.all("accepted").map(({ opId }) => opId)).toEqual([3, 4])
    expect(new Set(world.told)).toEqual(new Set(["r1", "r2"]))
    world.signer.sign = sign
    yield* Time.adjust(30_000)
    expect(world.bundles()).toEqual([2])
  })

  test("expires nothing while the clock is not trusted or a nonce is unknown", function* () {
    for (const cause of ["clock", "nonce"] as const) {
      const world = yield* World.make({ profile: { requestExpiryMillis: 60_000 } })
      accept(world, 1)
      const away = Effect.fail(new SignerError({ reason: "unavailable", message: "away" }))
      world.signer.sign = () => away
      world.expiry.isOn = true
      if (cause === "clock") world.expiry.isTrusted = false
      else world.foreign.add(0n)
      yield* world.wake
      for (let second = 0; second < 180; second += 10) yield* Time.adjust(10_000)
      expect([cause, world.rows.all("accepted").length]).toEqual([cause, 1])
    }
  })

  const expiring = World.make({ profile: { requestExpiryMillis: 60_000 } })

  test("expires the remaining elements of a request with exposed ops", function* () {
    const world = yield* expiring
    const request = { requestId: "r" }
    world.rows.put({ ...world.accept(1, { prepared: { ...request, index: 0 } }), exposed: true })
    world.accept(2, { prepared: { ...request, index: 1 } })
    world.expiry.isOn = true
    world.signer.sign = () => Effect.fail(new SignerError({ reason: "unavailable", message: "away" }))
    yield* world.wake
    for (let second = 0; second < 120; second += 10) yield* Time.adjust(10_000)
    expect(world.rows.all("accepted").map(({ opId }) => opId)).toEqual([1])
    expect(new Set(world.told)).toEqual(new Set(["r"]))
  })

  test("expires an earlier process's requests if their settings are gone for the whole expiry time", function* () {
    const world = yield* expiring
    yield* Time.adjust(1_000_000)
    // More of them than one journal read returns.
    for (let opId = 1; opId <= 300; opId += 1) world.rows.put({ ...world.accept(opId), acceptedAt: 0 })
    world.settings.isGone = true
    world.expiry.isOn = true
    yield* world.wake
    for (let second = 0; second < 60; second += 10) yield* Time.adjust(10_000)
    expect(world.rows.all("accepted")).toHaveLength(300)
    yield* Time.adjust(30_000)
    expect(world.rows.all("accepted")).toEqual([])
  })

  test("sends ops once their settings can be read, and retries that read at intervals", function* () {
    const world = yield* World.make()
    accept(world, 300)
    world.settings.isGone = true
    yield* world.wake
    for (let second = 0; second < 600; second += 10) yield* Time.adjust(10_000)
    expect(world.settings.asked).toBeLessThan(100)
    world.settings.isGone = false
    yield* Time.adjust(31_000)
    expect(world.rows.all("sent")).toHaveLength(300)
  })

  const refused = new SignerError({ reason: "refused", message: "policy" })

  test("fails ops whose transactions its signer refuses, and continues with the others", function* () {
    const world = yield* World.make()
    accept(world, 5)
    const { signTransaction } = world.signer
    let tries = 0
    world.signer.signTransaction = Effect.suspend(() => {
      tries += 1
      // Bundles of five and of two with the first op, then the op by itself.
      return tries <= 3 ? Effect.fail(refused) : signTransaction
    })
    yield* world.wake
    yield* Time.settle
    yield* world.mine
    yield* Time.settle
    yield* world.mine
    expect(codes(world)).toEqual([expect.stringContaining("r1 signer_unavailable")])
    expect(landed(world)).toBe(4)
  })

  test("fails a signed op that a mined transaction lacked if no third party can land it", function* () {
    const world = yield* World.make()
    accept(world, 2)
    world.lacked.add(2)
    yield* world.wake
    yield* Time.settle
    world.blames.set(walletOf(world, 2), "AA23 reverted")
    yield* world.mine
    yield* Time.settle
    expect(codes(world)).toEqual(["r2 execution_failed: AA23 reverted"])
  })

  test("fails neither ops that a third party may land nor their dependants", function* () {
    const world = yield* World.make()
    const request = { requestId: "given", kind: "given" as const }
    world.rows.put({ ...world.accept(1, { prepared: { ...request, index: 0 } }), exposed: true })
    world.accept(2, { prepared: { ...request, index: 1 } })
    world.rows.put({
      ...world.accept(3, { prepared: { ...request, index: 2, dependsOn: [1] } }),
      exposed: true
    })
    world.blames.set(walletOf(world, 1), "AA23 reverted")
    world.blames.set(walletOf(world, 2), "AA23 reverted")
    yield* world.wake
    for (let second = 0; second < 60; second += 10) yield* Time.adjust(10_000)
    expect(world.rows.failed.get("given")?.map(({ index }) => index)).toEqual([1])
    expect(world.rows.ops.get(1)?.state).toBe("accepted")
  })

  test("sends exposed ops behind a rejected op under other nonces once they are dead, and fails callers' bytes", function* () {
    const world = yield* World.make()
    const wallet = walletOf(world, 1)
    world.accept(1, { wallet })
    world.rows.put({ ...world.accept(2, { wallet, sequence: 1n }), exposed: true })
    world.rows.put({
      ...world.accept(3, { wallet, sequence: 2n, prepared: { kind: "given" } }),
      exposed: true
    })
    world.blames.set(wallet, "AA23 reverted")
    yield* world.wake
    yield* Time.settle
    world.blames.clear()
    for (let second = 0; second < 120; second += 10) yield* Time.adjust(10_000)
    expect([world.bundles(), codes(world)]).toEqual([[], ["r1 execution_failed: AA23 reverted"]])
    world.over.add(2).add(3)
    for (let second = 0; second < 60; second += 10) yield* Time.adjust(10_000)
    yield* world.mine
    expect(codes(world)).toEqual([
      "r1 execution_failed: AA23 reverted",
      "r3 window_passed: validity window over before it was executed"
    ])
    expect(world.rows.all("settled").map(({ requestId }) => requestId)).toEqual(["r2"])
  })

  test("prepares a signed op again whose hash depends on its new signature, and holds up no other", function* () {
    const world = yield* World.make()
    const signed = { exposed: true, userOpHash: Make.word(0x5e) }
    world.rows.put({ ...world.accept(1, { prepared: { userOpHash: null } }), ...signed })
    world.accept(2)
    yield* world.wake
    yield* Time.settle
    expect(world.bundles()).toEqual([2])
    expect(world.rows.ops.get(1)).toMatchObject({ state: "abandoned", ...signed })
  })

  test("prepares an op again at a higher base fee, and sends another one once the base fee has fallen", function* () {
    const world = yield* World.make()
    accept(world, 1)
    Object.assign(world.node, { baseFee: 20n * gwei, offered: 60n * gwei })
    yield* world.wake
    yield* Time.settle
    yield* world.mine
    Object.assign(world.node, { baseFee: gwei, offered: 3n * gwei })
    world.accept(2)
    yield* world.wake
    yield* Time.adjust(1_000)
    expect(world.bundles()).toEqual([1, 1])
  })

  test("moves no op to a nonce that others have used since its wallet was last read", function* () {
    const world = yield* World.make()
    const wallet = Make.address(0xa1)
    world.accept(1, { wallet })
    yield* world.wake
    yield* Time.settle
    yield* world.mine
    world.sequences.set(`${wallet} 0`, 3n)
    world.accept(2, { wallet, sequence: 3n })
    yield* world.wake
    yield* Time.settle
    expect(world.pool[0]?.ops.map(({ userOpHash }) => userOpHash)).toEqual([
      world.prepared(2, wallet, 3n).userOpHash
    ])
  })

  test("waits when the node blames a nonce that it reports as free", function* () {
    const world = yield* World.make()
    accept(world, 2)
    world.blames.set(walletOf(world, 1), "AA25 invalid account nonce")
    yield* world.wake
    yield* Time.adjust(10_000)
    expect([world.bundles(), codes(world)]).toEqual([[1], []])
    world.blames.clear()
    yield* Time.adjust(30_000)
    expect(world.bundles()).toEqual([1, 1])
  })

  test("prepares an op again that was too late for the block of its simulation", function* () {
    const world = yield* World.make()
    accept(world, 1)
    world.blames.set(walletOf(world, 1), "AA22 expired or not due")
    yield* world.wake
    yield* Time.settle
    expect([world.rows.renewed, world.bundles()]).toEqual([[1], []])
    world.blames.clear()
    yield* Time.adjust(200)
    expect([world.bundles(), codes(world)]).toEqual([[1], []])
  })
})

describe("a transaction of the EOA itself", () => {
  const carried = ({ rows }: World.World) =>
    [...rows.transactions].map(([nonce, { ops }]) => [nonce, ...ops.map(({ opId }) => opId)])

  test("goes without ops, and later ops follow once it is mined", function* () {
    const world = yield* World.make()
    for (const opId of [1, 2]) world.acceptDirect(opId)
    world.accept(3)
    yield* world.wake
    yield* Time.settle
    expect(carried(world)).toEqual([
      [0n, 1],
      [1n, 2]
    ])
    expect(world.pool.map(({ direct, ops }) => [direct, ops])).toEqual([
      ["r1", []],
      ["r2", []]
    ])
    yield* world.mine
    yield* Time.settle
    expect(carried(world).at(-1)).toEqual([2n, 3])
    expect(world.rows.all("settled").map(({ opId }) => opId)).toEqual([1, 2])
  })

  test("is not signed if it would revert, and fails with the reason", function* () {
    const world = yield* World.make()
    world.acceptDirect(1)
    world.reverting.reason = "not today"
    yield* world.wake
    yield* Time.settle
    expect(codes(world)).toEqual(["r1 execution_failed: not today"])
    expect([world.pool.length, carried(world)]).toEqual([0, []])
    expect(world.told).toContain("r1")
  })

  test("ends when its key refuses to sign, and waits for a key that is away", function* () {
    for (const [reason, failed] of [
      ["refused", ["r1 signer_unavailable: the key provider refused to sign"]],
      ["unavailable", []]
    ] as const) {
      const world = yield* World.make()
      world.acceptDirect(1)
      const { signTransaction } = world.signer
      world.signer.signTransaction = Effect.fail(new SignerError({ reason, message: "no" }))
      yield* world.wake
      yield* Time.adjust(5_000)
      expect([reason, codes(world)]).toEqual([reason, failed])
      world.signer.signTransaction = signTransaction
      yield* Time.adjust(30_000)
      expect(carried(world)).toEqual(failed.length === 0 ? [[0n, 1]] : [])
    }
  })

  test("waits for money", function* () {
    const world = yield* World.make()
    world.acceptDirect(1)
    world.node.balance = 0n
    yield* world.wake
    yield* Time.adjust(60_000)
    expect([codes(world), carried(world)]).toEqual([[], []])
    world.node.balance = Make.plenty
    yield* Time.adjust(30_000)
    expect(carried(world)).toEqual([[0n, 1]])
  })

  test("goes under the next nonce after it has lost its own, and fails like any other", function* () {
    for (const reason of [null, "not twice"]) {
      const world = yield* World.make()
      world.acceptDirect(1, { exposed: true })
      world.reverting.reason = reason
      yield* world.wake
      yield* Time.settle
      expect(codes(world)).toEqual(reason === null ? [] : ["r1 execution_failed: not twice"])
      expect(carried(world)).toEqual(reason === null ? [[0n, 1]] : [])
    }
  })

  test("is not signed while a nonce of the EOA is unknown, even if it was signed before", function* () {
    const world = yield* World.make()
    world.acceptDirect(1, { exposed: true })
    world.foreign.add(0n)
    yield* world.wake
    yield* Time.adjust(60_000)
    expect(carried(world)).toEqual([])
    yield* world.mine
    yield* Time.adjust(30_000)
    expect(carried(world)).toEqual([[1n, 1]])
  })
})
