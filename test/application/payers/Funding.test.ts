import { describe, expect, it } from "@effect/vitest"
import * as Funding from "../../../src/application/payers/Funding.js"
import type * as GasLens from "../../../src/domain/erc4337/gas/GasLens.js"
import type { Address } from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Make from "../../support/journal/Make.js"
import * as Site from "./Site.js"

const { dataOf, op, paymaster, version } = Site
const [a, b] = [Make.address(0xa1), Make.address(0xb2)]

const paidBy = (sender: Address, prefund: bigint) => ({ op: { ...op, sender }, prefund })
const sponsored = (sender: Address, prefund: bigint) => ({
  op: { ...op, sender, paymasterAndData: dataOf(Hex.empty) },
  prefund
})

/** Deposit and balance of accounts. */
const funds = (of: ReadonlyArray<readonly [Address, bigint, bigint]>): Funding.Funds => ({
  available: new Map(of.map(([account, deposit, balance]) => [account, deposit + balance])),
  deposits: new Map(of.map(([account, deposit]) => [account, deposit]))
})

const state = (deposit: bigint, balance: bigint): GasLens.WalletState => ({
  deposit,
  balance,
  deployed: true,
  codeHash: Make.word(1),
  sequences: []
})

describe("funds that ops use", () => {
  const ops = [paidBy(a, 1n), sponsored(a, 1n), sponsored(b, 1n), paidBy(b, 1n)].map((each) => each.op)

  it("are those of every wallet and paymaster, each once", () => {
    expect(ops.map((each) => Funding.paymasterOf(version, each))).toEqual([null, paymaster, paymaster, null])
    expect(Funding.payers(version, ops)).toEqual([a, paymaster, b])
    expect(Funding.payers(version, ops.slice(2, 3))).toEqual([b, paymaster])
  })

  it("are a wallet's deposit and balance, or only a paymaster's deposit", () => {
    const accounts = Funding.payers(version, ops)
    const found = Funding.found(ops, accounts, [state(1n, 10n), state(2n, 20n), state(3n, 30n)])
    expect([...found.available]).toEqual([
      [a, 11n],
      [b, 33n]
    ])
    expect([...found.deposits]).toEqual([
      [a, 1n],
      [paymaster, 2n],
      [b, 3n]
    ])
  })

  it("are not invented where no node reported them", () => {
    const found = Funding.found(ops, [a, b], [state(1n, 10n)])
    expect([...found.available]).toEqual([[a, 11n]])
    expect([...found.deposits]).toEqual([[a, 1n]])
  })

  it("are written to the journal capped to its column", () => {
    const spaceOf = (wallet: Address) => Make.space(1, { wallet })
    const most = 2n ** 256n - 1n
    const told = Funding.forAcceptance(
      { spaceOf },
      {
        available: new Map([
          [a, most + 1n],
          [b, 5n]
        ]),
        deposits: new Map()
      }
    )
    expect(told).toEqual([
      { space: spaceOf(a), available: most },
      { space: spaceOf(b), available: 5n }
    ])
  })
})

describe("the shortfall of an op's prefund", () => {
  it("counts earlier payable ops first, payer by payer", () => {
    const trials = [paidBy(a, 60n), paidBy(a, 50n), paidBy(b, 7n), paidBy(a, 40n), paidBy(a, 1n)]
    expect(
      Funding.lacks(
        version,
        trials,
        funds([
          [a, 30n, 70n],
          [b, 0n, 6n]
        ])
      )
    ).toEqual([0n, 10n, 1n, 0n, 1n])
  })

  it("concerns the paymaster's deposit where it pays, whatever its balance and the wallet's", () => {
    const known = funds([
      [a, 100n, 100n],
      [b, 100n, 100n],
      [paymaster, 10n, 1_000n]
    ])
    expect(
      Funding.lacks(version, [sponsored(a, 6n), sponsored(b, 5n), sponsored(b, 4n), paidBy(b, 200n)], known)
    ).toEqual([0n, 1n, 0n, 0n])
  })

  it("is the whole prefund where the payer's funds are unknown", () => {
    expect(Funding.lacks(version, [paidBy(a, 3n), sponsored(b, 4n), paidBy(b, 0n)], funds([]))).toEqual([
      3n,
      4n,
      0n
    ])
  })
})

describe("a wallet pays when its op runs", () => {
  it("when its deposit does not cover the remaining prefund", () => {
    const known = funds([
      [a, 10n, 100n],
      [b, 1n, 0n]
    ])
    expect(
      Funding.selfFunded(
        version,
        [paidBy(a, 6n), paidBy(b, 1n), paidBy(a, 4n), paidBy(a, 1n), paidBy(b, 0n), paidBy(b, 1n)],
        known
      )
    ).toEqual([false, false, false, true, false, true])
  })

  it("its whole deposit when that was too little", () => {
    expect(
      Funding.selfFunded(version, [paidBy(a, 11n), paidBy(a, 0n), paidBy(a, 1n)], funds([[a, 10n, 100n]]))
    ).toEqual([true, false, true])
  })

  it("not where a paymaster pays, and its deposit stays unchanged", () => {
    expect(Funding.selfFunded(version, [sponsored(a, 11n), paidBy(a, 10n)], funds([[a, 10n, 0n]]))).toEqual([
      false,
      false
    ])
  })
})

describe("ops for which there is too little money", () => {
  const measure = (stage: GasLens.Stage, data = Hex.empty) => ({ stage, data }) as GasLens.Measure
  const ran = { value: 0n, measure: measure("ok") }
  /** Code and figures of each failing op, by its index. */
  const told = (ops: Parameters<typeof Funding.failures>[1], known: Funding.Funds) =>
    [...Funding.failures(version, ops, known)].map(([place, { code, figures }]) => [place, code, figures])

  it("fail with the payer and the shortfall, and later ops are counted without them", () => {
    const ops = [paidBy(a, 60n), paidBy(a, 50n), paidBy(a, 40n)].map((each) => ({ ...each, ...ran }))
    expect(told(ops, funds([[a, 0n, 100n]]))).toEqual([
      [1, "insufficient_funds", { wallet: a, required: "50", available: "100", missing: "10" }]
    ])
  })

  it("fail by the deposit of their paymaster", () => {
    const ops = [sponsored(a, 6n), sponsored(b, 5n)].map((each) => ({ ...each, ...ran }))
    expect(
      told(
        ops,
        funds([
          [paymaster, 10n, 1_000n],
          [b, 7n, 8n]
        ])
      )
    ).toEqual([[1, "insufficient_funds", { paymaster, required: "5", available: "10", missing: "1" }]])
  })

  it("fail when the wallet did not pay, though it seemed to have enough", () => {
    const ops = [{ ...paidBy(a, 5n), value: 0n, measure: measure("prefund") }]
    expect(told(ops, funds([[a, 5n, 0n]]))).toEqual([
      [0, "insufficient_funds", { wallet: a, required: "5", available: "5", missing: "0" }]
    ])
  })

  const silent = measure("call")
  const sending = (value: bigint, of = silent) => ({ ...paidBy(a, 10n), value, measure: of })

  it("are those whose call sends more than is left, where it reverts without a word", () => {
    const known = funds([[a, 40n, 60n]])
    expect(told([sending(91n)], known)).toEqual([
      [0, "insufficient_funds", { wallet: a, required: "101", available: "100", missing: "1" }]
    ])
    // The wallet had enough: the call failed for another reason.
    expect(told([sending(90n)], known)).toEqual([])
    expect(told([sending(91n, measure("call", Hex.unsafe("0x01")))], known)).toEqual([])
    expect(told([sending(91n, measure("validation"))], known)).toEqual([])
    expect(told([{ ...sending(0n), prefund: 100n }], known)).toEqual([])
  })

  it("count the value of earlier calls, except reverted ones", () => {
    const known = funds([[a, 0n, 100n]])
    const [sent, reverted] = [sending(50n, measure("ok")), sending(50n, measure("call", Hex.unsafe("0x01")))]
    expect(told([sent, sending(31n)], known)).toEqual([
      [1, "insufficient_funds", { wallet: a, required: "41", available: "100", missing: "1" }]
    ])
    expect(told([sent, sending(30n)], known)).toEqual([])
    expect(told([sent, sending(10n, measure("ok")), sending(11n)], known)).toMatchObject([
      [2, "insufficient_funds", { missing: "1" }]
    ])
    // Its prefund was taken before the other ops sent the remainder.
    expect(told([sent, sending(30n, measure("ok")), sending(0n)], known)).toEqual([])
    expect(told([reverted, sending(31n)], known)).toEqual([])
  })

  it("need only the value where a paymaster pays", () => {
    const known = funds([
      [a, 0n, 50n],
      [paymaster, 1_000n, 0n]
    ])
    const call = (value: bigint) => ({ ...sponsored(a, 10n), value, measure: silent })
    expect(told([call(50n)], known)).toEqual([])
    expect(told([{ ...call(20n), measure: measure("ok") }, call(31n)], known)).toEqual([
      [1, "insufficient_funds", { wallet: a, required: "31", available: "50", missing: "1" }]
    ])
  })

  it("exclude unmeasured ops whose prefund is covered", () => {
    expect(told([{ ...paidBy(a, 5n), value: 0n, measure: undefined }], funds([[a, 5n, 0n]]))).toEqual([])
    expect(told([{ ...paidBy(a, 5n), value: 10n, measure: undefined }], funds([[a, 5n, 0n]]))).toEqual([])
  })
})
