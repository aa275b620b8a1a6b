import { describe, expect } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as Result from "effect/Result"
import * as LookUp from "../../../../src/application/lanes/worker/LookUp.js"
import * as Bundle from "../../../../src/application/lanes/worker/rules/Bundle.js"
import type { SubmissionContext } from "../../../../src/application/lanes/worker/rules/Context.js"
import * as Payer from "../../../../src/application/payers/Payer.js"
import type { Op } from "../../../../src/application/ports/journal/Records.js"
import type { FoundInclusion } from "../../../../src/application/ports/journal/RemoteSubmissions.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import * as Nonce from "../../../../src/domain/erc4337/Nonce.js"
import * as Percent from "../../../../src/domain/erc4337/Percent.js"
import * as UserOperation from "../../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as WalletCalls from "../../../../src/domain/wallet/WalletCalls.js"
import * as Make from "../../../support/journal/Make.js"
import * as Landings from "../../../support/lanes/Landings.js"
import { test } from "../../../support/Test.js"

const wallet = Make.address(0xa1)
const callData = WalletCalls.execute(Make.address(0xb2), 3n, Hex.unsafe("0x1234"))

/** An op of the wallet with sequence 4 of its key 0, ready to go. */
const userOp = (over: Partial<UserOperation.UserOperation> = {}): UserOperation.UserOperation => ({
  sender: wallet,
  nonce: Nonce.make(0n, 4n),
  initCode: Hex.empty,
  callData,
  callGasLimit: 1n,
  verificationGasLimit: 1n,
  preVerificationGas: 1n,
  maxFeePerGas: 1n,
  maxPriorityFeePerGas: 1n,
  paymasterAndData: Hex.empty,
  signature: Hex.empty,
  ...over
})

const world = (rest: Partial<Op> = {}, validUntil = 0, mayBeLost = true) => {
  const chain = Landings.makeChain()
  const recorded: Array<FoundInclusion> = []
  const identified: Array<string> = []
  const versions: Array<Hex.Bytes32> = []
  const unsigned = userOp()
  const context: SubmissionContext = {
    kind: "ops",
    connection: {
      chain: chain.client,
      profile: NetworkProfile.make({ chainId: Make.chainId, settledDepth: 3 }),
      trust: "caller",
      rpc: Redacted.make("http://node")
    },
    access: Make.access(),
    version: "v0.7",
    entryPoint: Landings.entryPoint,
    buffers: {
      transaction: Result.getOrThrow(Percent.from(50)),
      price: Result.getOrThrow(Percent.from(20))
    },
    payer: Payer.wallet,
    aggregator: null,
    keyOf: () => null,
    deployer: Effect.die(new Error("nothing is deployed")),
    bindHolds: () => Effect.void,
    release: () => Effect.void
  }
  const space = {
    authority: Make.lane.signer,
    chainId: Make.chainId,
    entryPoint: Landings.entryPoint,
    wallet
  }
  const userOpHash = UserOperation.hash("v0.7", Landings.entryPoint, Make.chainId, unsigned)
  const op: Op = {
    opId: 1,
    requestId: "r",
    index: 0,
    accountId: Make.alice,
    endpoint: "/execute",
    key: Make.access().key,
    contextDigest: null,
    acceptedAt: 0,
    notBefore: null,
    state: "accepted",
    exposed: false,
    space,
    nonceKey: 0n,
    sequence: 4n,
    userOpHash,
    prepared: {
      requestId: "r",
      index: 0,
      kind: "op",
      unsigned,
      space,
      nonceKey: 0n,
      sequence: 4n,
      userOpHash,
      proof: null,
      window: { validAfter: 0, validUntil },
      dependsOn: [],
      reserve: 0n,
      l1Fee: 0n,
      returned: null,
      goodUntil: null
    },
    txHash: null,
    success: null,
    revertData: null,
    ...rest
  }
  const lookUp = LookUp.make({
    opJournal: {
      versions: () => Effect.succeed(versions.map((hash) => ({ opId: 1, userOpHash: hash })))
    },
    recoveryJournal: {
      identifyAnew: (_, requestId, ops) =>
        Effect.sync(
          () => void identified.push(...ops.map((each) => `${requestId} ${each.index} ${each.userOpHash}`))
        )
    },
    remoteOpJournal: {
      recordInclusions: (_, __, inclusions) =>
        Effect.sync(() => {
          recorded.push(...inclusions)
          return []
        })
    }
  })
  return {
    chain,
    identified,
    recorded,
    versions,
    userOpHash,
    found: Effect.result(lookUp(Bundle.held(op, context), context, mayBeLost))
  }
}

const tagOf = (found: Result.Result<{ readonly _tag: string }, { readonly _tag: string }>) =>
  Result.isSuccess(found) ? found.success._tag : found.failure._tag

describe("an op that fails because of the chain's state", () => {
  test("waits for earlier ops of its nonce key", function* () {
    const { chain, found } = world()
    chain.mine(1)
    chain.say(2n)
    expect(yield* found).toEqual(Result.succeed({ _tag: "sequence", sequence: 2n }))
  })

  test("is dead behind an open nonce once its time is over at settled depth, only if exposed", function* () {
    const tags = (exposed: boolean) =>
      Effect.gen(function* () {
        const { chain, found } = world({ exposed }, 70)
        chain.mine(9)
        chain.say(2n)
        const before = tagOf(yield* found)
        chain.mine(1)
        return [before, tagOf(yield* found)]
      })
    expect(yield* tags(true)).toEqual(["sequence", "dead"])
    expect(yield* tags(false)).toEqual(["sequence", "sequence"])
  })

  test("has landed, in any transaction", function* () {
    const { chain, found, recorded, userOpHash } = world()
    chain.mine(1)
    chain.landOp(userOp(), Make.chainId)
    chain.mine(4)
    chain.say(5n)
    expect(tagOf(yield* found)).toBe("landed")
    expect(recorded).toMatchObject([
      { userOpHash, landedAs: userOpHash, blockNumber: 1n, confirmations: 5, final: true }
    ])
  })

  test("has landed as an earlier version", function* () {
    const { chain, found, recorded, userOpHash, versions } = world()
    chain.mine(1)
    const earlier = chain.landOp(userOp({ maxFeePerGas: 9n }), Make.chainId)
    versions.push(earlier)
    chain.say(5n)
    expect(tagOf(yield* found)).toBe("landed")
    expect(recorded).toMatchObject([{ userOpHash, landedAs: earlier, final: false }])
  })

  test("has landed as a version that the journal lacks, by its nonce and call", function* () {
    const { chain, found, recorded, userOpHash } = world()
    chain.mine(1)
    const unknown = chain.landOp(userOp({ maxFeePerGas: 9n }), Make.chainId)
    chain.say(5n)
    expect(tagOf(yield* found)).toBe("landed")
    expect(recorded).toMatchObject([{ userOpHash, landedAs: unknown }])
  })

  test("is not matched with an op of the same nonce and call if the journal has lost nothing", function* () {
    const { chain, found, recorded } = world({}, 0, false)
    chain.mine(1)
    chain.landOp(userOp({ maxFeePerGas: 9n }), Make.chainId)
    chain.say(5n)
    expect(tagOf(yield* found)).toBe("dead")
    expect(recorded).toEqual([])
  })

  test("has landed under a hash that depends on a signature that the journal has lost", function* () {
    const { chain, found, identified, recorded } = world({ userOpHash: null })
    chain.mine(1)
    const unknown = chain.landOp(userOp({ maxFeePerGas: 9n }), Make.chainId)
    chain.say(5n)
    expect(tagOf(yield* found)).toBe("landed")
    expect(identified).toEqual([`r 0 ${unknown}`])
    expect(recorded).toMatchObject([{ userOpHash: unknown, landedAs: unknown }])
  })

  test("is dead once another call has used its nonce at settled depth, and not earlier", function* () {
    const { chain, found, recorded } = world()
    chain.mine(1)
    chain.landOp(userOp({ callData: WalletCalls.execute(Make.address(0xb3), 3n, Hex.empty) }), Make.chainId)
    chain.say(4n)
    chain.say(5n, 1n)
    expect(yield* found).toEqual(Result.succeed({ _tag: "sequence", sequence: 5n }))
    chain.mine(1)
    expect(tagOf(yield* found)).toBe("sequence")
    chain.mine(1)
    expect(tagOf(yield* found)).toBe("dead")
    expect(recorded).toEqual([])
  })

  test("is not judged while the node does not show the user of its nonce", function* () {
    const { chain, found } = world()
    chain.mine(1)
    chain.landOp(userOp({ maxFeePerGas: 9n }), Make.chainId, undefined, false)
    chain.mine(5)
    chain.say(5n)
    expect(tagOf(yield* found)).toBe("Obstacle")
    chain.fallSilent(true)
    expect(tagOf(yield* found)).toBe("Obstacle")
  })

  test("moves to the wallet's new configuration immediately if it was not exposed", function* () {
    const { chain, found } = world()
    chain.mine(1)
    chain.say(4n)
    chain.configure(1n, 1n)
    expect(tagOf(yield* found)).toBe("dead")
  })

  test("keeps its nonce under a new configuration until settled depth if it was exposed", function* () {
    const { chain, found } = world({ exposed: true })
    chain.configure(0n, 0n)
    chain.mine(3)
    chain.say(4n)
    chain.configure(1n, 3n)
    expect(tagOf(yield* found)).toBe("waits")
    chain.mine(2)
    expect(tagOf(yield* found)).toBe("dead")
  })

  for (const [how, validUntil, next] of [
    ["its time was over", 70, 2n],
    ["its wallet was reconfigured", 0, 4n]
  ] as const)
    test(`has landed before ${how}, although a node that lags shows its nonce unused`, function* () {
      const { chain, found, recorded, userOpHash } = world({ exposed: true }, validUntil)
      chain.mine(5)
      chain.say(next)
      chain.say(5n, 5n)
      chain.configure(0n, 0n)
      chain.configure(1n, 6n)
      chain.landOp(userOp(), Make.chainId)
      chain.mine(5)
      chain.fallBehindWithCalls(6)
      expect(tagOf(yield* found)).toBe("landed")
      expect(recorded).toMatchObject([{ userOpHash, final: true }])
    })

  test("fails by itself if the chain does not explain it", function* () {
    const { chain, found } = world()
    chain.mine(1)
    chain.say(4n)
    chain.configure(0n, 0n)
    expect(tagOf(yield* found)).toBe("nothing")
  })
})

describe("the same call", () => {
  test("is recognised by target, value and data, whatever its links to other ops", function* () {
    const ledger = Make.address(0x1ed)
    const call = { target: Make.address(0xb2), value: 3n, data: Hex.unsafe("0x1234") }
    const record = { target: ledger, value: 0n, data: Hex.unsafe(`0x${"ab".repeat(36)}`) }
    yield* Effect.void
    expect(LookUp.isSameCall(callData, callData, null)).toBe(true)
    expect(LookUp.isSameCall(callData, WalletCalls.executeBatch([call]), ledger)).toBe(true)
    expect(LookUp.isSameCall(callData, WalletCalls.execute(call.target, 4n, call.data), ledger)).toBe(false)
    expect(LookUp.isSameCall(callData, WalletCalls.executeBatch([call, call]), ledger)).toBe(false)
    expect(LookUp.isSameCall(callData, WalletCalls.executeBatch([call, record]), null)).toBe(false)
  })
})
