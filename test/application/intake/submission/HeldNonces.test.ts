import { describe, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as ChainFacts from "../../../../src/application/chain/ChainFacts.js"
import * as HeldNonces from "../../../../src/application/intake/submission/HeldNonces.js"
import { type ChainClient, callOf } from "../../../../src/application/ports/chain/ChainRpc.js"
import type { OpRecord } from "../../../../src/application/ports/journal/Requests.js"
import * as NetworkProfile from "../../../../src/application/ports/NetworkProfile.js"
import type { OpContext } from "../../../../src/application/prepare/OpContext.js"
import * as Nonce from "../../../../src/domain/erc4337/Nonce.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Words from "../../../../src/domain/primitives/Words.js"
import * as WalletCalls from "../../../../src/domain/wallet/WalletCalls.js"
import * as WalletConfig from "../../../../src/domain/wallet/WalletConfig.js"
import * as Make from "../../../support/journal/Make.js"
import * as Landings from "../../../support/lanes/Landings.js"
import { test } from "../../../support/Test.js"

const record = (index: number, over: Partial<OpRecord> = {}): OpRecord => ({
  ...Make.op({ index, nonceKey: 3n, sequence: 7n, userOpHash: Make.word(index) }),
  accountId: Make.alice,
  requestId: "r",
  state: "accepted",
  txHash: null,
  success: null,
  revertData: null,
  ...over
})
/** What a wallet of one owner answers of its configuration after so many of them. */
const configuration = (configNonce: bigint): Hex.Hex =>
  Words.encode([WalletConfig.part(WalletConfig.ecdsa(Make.address(9))), Words.uint(configNonce, 64)])
const indexes = (held: HeldNonces.HeldNonces) => [...held.keys()]

describe("the nonces that elements are held to", () => {
  it("are those of accepted ops for which something was signed", () => {
    const ops = [record(0), record(1), record(2, { state: "sent" }), record(3, { state: "settled" })]
    const held = HeldNonces.of({ ops, signed: [record(0), record(2), record(3)] }, [0, 1, 2, 3])
    expect(indexes(held)).toEqual([0])
    expect(held.get(0)).toMatchObject({ space: Make.space(1), nonceKey: 3n, sequence: 7n })
  })

  it("are those of the elements that are asked for", () => {
    const ops = [record(0), record(1)]
    expect(indexes(HeldNonces.of({ ops, signed: ops }, [1]))).toEqual([1])
  })

  it("are held by what was signed for the same element under the same nonce, and by nothing else", () => {
    const ops = [record(0)]
    for (const other of [
      record(1),
      record(0, { nonceKey: 4n }),
      record(0, { sequence: 8n }),
      record(0, { space: Make.space(2) }),
      record(0, { space: Make.space(1, { entryPoint: Make.otherEntryPoint }) })
    ])
      expect(indexes(HeldNonces.of({ ops, signed: [other] }, [0]))).toEqual([])
    const version = record(0, { userOpHash: Make.word(99) })
    expect(indexes(HeldNonces.of({ ops, signed: [version] }, [0]))).toEqual([0])
  })
})

describe("what has become of a held nonce", () => {
  const chain = Landings.makeChain()
  chain.mine(9)
  /** A wallet of its first configuration, which does not exist yet. */
  const state = { ...chain.client, code: () => Effect.succeed(Hex.empty) } as unknown as ChainClient
  const context = {
    connection: { chain: state, profile: NetworkProfile.make({ chainId: Make.chainId, settledDepth: 3 }) },
    formula: { initCode: "0x00" }
  } as unknown as OpContext
  const held = HeldNonces.of({ ops: [record(0)], signed: [record(0)] }, [0])
  const fate = Effect.suspend(() => HeldNonces.fateOf(context, { facts: ChainFacts.make() }, held))

  const settledTo = 7n

  test("is undecided while the node does not tell the next nonce", function* () {
    const call = () => Effect.succeed({ success: true, data: Hex.empty })
    const mute = { ...context.connection, chain: { ...state, call } }
    const asked = HeldNonces.fateOf({ ...context, connection: mute }, { facts: ChainFacts.make() }, held)
    expect(yield* asked).toEqual({ dead: [], undecided: [0], settledTo })
  })

  test("is told by the sequence alone, whatever its key is", function* () {
    chain.say(Nonce.make(3n, 7n))
    expect(yield* fate).toEqual({ dead: [], undecided: [], settledTo })
    chain.say(Nonce.make(3n, 8n))
    expect(yield* fate).toEqual({ dead: [0], undecided: [], settledTo })
  })

  test("is final once its nonce is used in a block that nothing takes back, and undecided before", function* () {
    /** The first block in which it is used; null: the node does not have the state of past blocks. */
    const usedIn = (block: number | null) => {
      const call: ChainClient["call"] = (_, __, at) =>
        Effect.succeed({
          success: true,
          data:
            at !== undefined && block === null
              ? Hex.empty
              : Make.word(Nonce.make(3n, Number(at ?? 9n) < (block ?? 0) ? 7n : 8n))
        })
      const used = { ...context.connection, chain: { ...state, call } }
      return HeldNonces.fateOf({ ...context, connection: used }, { facts: ChainFacts.make() }, held)
    }
    // Of three confirmations the newest block is the first.
    expect(yield* usedIn(7)).toEqual({ dead: [0], undecided: [], settledTo })
    for (const block of [8, null])
      expect(yield* usedIn(block)).toEqual({ dead: [], undecided: [0], settledTo })
  })

  test("is final once the wallet has another configuration in a block that nothing takes back", function* () {
    /** The first block with the wallet's second configuration. */
    let changedIn = 9
    let hasPast = true
    const call: ChainClient["call"] = (asked, _, at = 9n) =>
      Effect.succeed({
        success: true,
        data:
          callOf(asked).data === WalletCalls.configuration
            ? hasPast || at === 9n
              ? configuration(Number(at) < changedIn ? 1n : 2n)
              : Hex.empty
            : Make.word(7)
      })
    const wallet = { ...context.connection, chain: { ...state, call } }
    const known = {
      ...ChainFacts.make(),
      wallet: () => ({ config: WalletConfig.ecdsa(Make.address(9)), configNonce: 1n })
    }
    const asked = () => HeldNonces.fateOf({ ...context, connection: wallet }, { facts: known }, held)
    expect(yield* asked()).toEqual({ dead: [], undecided: [0], settledTo })
    // Of three confirmations the newest block is the first.
    changedIn = 7
    expect(yield* asked()).toEqual({ dead: [0], undecided: [], settledTo })
    hasPast = false
    expect(yield* asked()).toEqual({ dead: [], undecided: [0], settledTo })
    hasPast = true
    changedIn = 10
    expect(yield* asked()).toEqual({ dead: [], undecided: [], settledTo })
  })
})

test("versions of a held nonce that have landed are not missing for a node that has not the block in which the nonce is used", function* () {
  const chain = Landings.makeChain()
  chain.mine(20)
  chain.land(Make.word(0), 1n, 10n)
  const connection = { chain: chain.client, profile: NetworkProfile.make({ chainId: Make.chainId }) }
  const context = { connection, entryPoint: Landings.entryPoint } as unknown as OpContext
  const landings = HeldNonces.landings(context, { signed: [record(0)] }, [0], { known: 12n })
  chain.fallBehind(11)
  expect(yield* Effect.flip(landings)).toMatchObject({ reason: "unreachable" })
  chain.fallBehind(8)
  expect((yield* landings).get(0)).toMatchObject({ blockNumber: 10n, confirmations: 3 })
})

describe("an op that has another nonce than its element is held to", () => {
  const held = HeldNonces.of({ ops: [record(0), record(1)], signed: [record(0), record(1)] }, [0, 1])
  const ready = (index: number, nonceKey: bigint, sequence: bigint) => ({ index, nonceKey, sequence })

  it("is one of another key or sequence, and an element that is held to none has any", () => {
    const ops = [ready(0, 3n, 7n), ready(1, 4n, 7n), ready(2, 9n, 9n)]
    expect(HeldNonces.displaced(ops, held)).toEqual({ moved: [ready(1, 4n, 7n)], behind: [] })
    expect(HeldNonces.displaced([ready(0, 3n, 8n)], held)).toEqual({ moved: [ready(0, 3n, 8n)], behind: [] })
  })

  it("is behind when an earlier one of its key is not used: it can not get its own", () => {
    const earlier = ready(0, 3n, 6n)
    expect(HeldNonces.displaced([earlier], held)).toEqual({ moved: [earlier], behind: [earlier] })
    const other = ready(0, 4n, 6n)
    expect(HeldNonces.displaced([other], held)).toEqual({ moved: [other], behind: [] })
  })
})
