import { describe, expect, it } from "@effect/vitest"
import * as fc from "fast-check"
import * as Matching from "../../../../../src/application/lanes/worker/rules/Matching.js"
import * as Address from "../../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../../src/domain/primitives/Hex.js"
import * as Ledger from "../../../../../src/domain/wallet/Ledger.js"
import * as WalletCalls from "../../../../../src/domain/wallet/WalletCalls.js"
import { bytes32, hex } from "../../../../domain/generators.js"

const addressOf = (n: number) => Address.unsafe(`0x${n.toString(16).padStart(40, "0")}`)
const ledger = addressOf(0x1ed)

const call = fc.record({
  target: fc.integer({ min: 1, max: 3 }).map(addressOf),
  value: fc.bigUintN(2),
  data: hex(8)
})
const links = fc.record({
  records: fc.option(bytes32),
  requires: fc.option(fc.record({ wallet: fc.constant(addressOf(9)), key: bytes32 }))
})

/** Few wallets, nonces and calls, so that they meet. */
const wanted = fc.record({
  wallet: fc.integer({ min: 1, max: 2 }).map(addressOf),
  call,
  nonce: fc.option(fc.bigInt({ min: 0n, max: 3n })),
  isOnce: fc.boolean()
})
const strayOf = (calls: ReadonlyArray<WalletCalls.Call>) =>
  fc.record({
    sender: fc.integer({ min: 1, max: 2 }).map(addressOf),
    nonce: fc.bigInt({ min: 0n, max: 3n }),
    callData:
      calls.length === 0
        ? hex(8)
        : fc
            .tuple(fc.constantFrom(...calls), links)
            .map(([each, linked]) => Ledger.callData(ledger, each, linked)),
    txHash: bytes32
  })
const situation = fc.array(wanted, { maxLength: 5 }).chain((elements) =>
  fc
    .uniqueArray(strayOf(elements.map((each) => each.call)), {
      maxLength: 6,
      selector: ({ nonce, sender }) => `${sender} ${nonce}`
    })
    .map((strays) => ({
      wanted: elements
        // Each nonce of a wallet belongs to one element.
        .filter(
          (each, place) =>
            each.nonce === null ||
            elements.findIndex(({ nonce, wallet }) => nonce === each.nonce && wallet === each.wallet) ===
              place
        )
        .map(
          (each, index): Matching.Wanted => ({
            ...each,
            requestId: "request",
            index,
            makes: (callData) => Ledger.makes(callData, each.call, ledger)
          })
        ),
      strays
    }))
)

describe("ops on the chain that the journal lacks", () => {
  it("cast doubt on elements whose call they make under another nonce, unless they belong to another element", () => {
    fc.assert(
      fc.property(situation, ({ strays, wanted }) => {
        const ownOf = ({ makes, nonce, wallet }: Matching.Wanted) =>
          strays.find((stray) => stray.sender === wallet && stray.nonce === nonce && makes(stray.callData))
        const taken = new Set(wanted.flatMap((each) => ownOf(each) ?? []))
        const doubts = Matching.doubts(wanted, strays)
        for (const each of wanted) {
          const others = strays.filter(
            (stray) =>
              stray.sender === each.wallet &&
              stray.nonce !== each.nonce &&
              !taken.has(stray) &&
              each.makes(stray.callData)
          )
          const isDoubtful = ownOf(each) === undefined && !each.isOnce && others.length > 0
          const own = doubts.filter((doubt) => doubt.wanted === each)
          expect(own.length).toBe(isDoubtful ? 1 : 0)
          for (const { stray } of own) expect(others).toContain(stray)
        }
      }),
      { numRuns: 500 }
    )
  })

  it("match a call whatever their links to other ops, and no other call", () => {
    fc.assert(
      fc.property(call, call, links, (one, other, linked) => {
        const callData = Ledger.callData(ledger, one, linked)
        expect(Ledger.makes(callData, one, ledger)).toBe(true)
        const isSame = one.target === other.target && one.value === other.value && one.data === other.data
        expect(Ledger.makes(callData, other, ledger)).toBe(isSame)
        expect(Ledger.makes(WalletCalls.executeBatch([one, other]), one, ledger)).toBe(false)
        expect(Ledger.makes(callData, null, ledger)).toBe(false)
        expect(Ledger.makes(Hex.empty, null, ledger)).toBe(true)
      })
    )
  })
})

describe("transactions of a key that the journal lacks", () => {
  const payload = fc.record({
    to: fc.option(fc.integer({ min: 1, max: 2 }).map(addressOf)),
    value: fc.bigUintN(1),
    data: fc.constantFrom(Hex.empty, Hex.unsafe("0x01"))
  })
  const nameOf = ({ data, to, value }: Matching.Payload) => `${to} ${value} ${data}`

  it("go to at most one request each, the oldest with the same payload", () => {
    fc.assert(
      fc.property(
        fc.array(payload, { maxLength: 8 }),
        fc.array(payload, { maxLength: 8 }),
        (wants, found) => {
          const wanted = wants.map((each, place) => ({ ...each, place }))
          const transactions = found.map((each, place) => ({ ...each, place }))
          const pairs = Matching.directs(wanted, transactions)
          for (const { transaction, wanted: own } of pairs) expect(nameOf(own)).toBe(nameOf(transaction))
          for (const name of new Set(wants.map(nameOf))) {
            const want = wanted.filter((each) => nameOf(each) === name)
            const there = transactions.filter((each) => nameOf(each) === name)
            const own = pairs.filter((pair) => nameOf(pair.wanted) === name)
            const count = Math.min(want.length, there.length)
            expect(own.map((pair) => pair.wanted.place)).toEqual(
              want.slice(0, count).map(({ place }) => place)
            )
            expect(own.map((pair) => pair.transaction.place)).toEqual(
              there.slice(0, count).map(({ place }) => place)
            )
          }
        }
      )
    )
  })
})
