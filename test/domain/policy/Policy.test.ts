import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Interface } from "ethers"
import * as fc from "fast-check"
import * as Movements from "../../../src/domain/policy/Movements.js"
import * as Policy from "../../../src/domain/policy/Policy.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { address, forAll, uint } from "../generators.js"

const of = (digit: string) => Address.unsafe(`0x${digit.repeat(40)}`)
const [usdc, router, supplier, stranger, wallet] = ["1", "2", "3", "4", "5"].map(of) as [
  Address.Address,
  Address.Address,
  Address.Address,
  Address.Address,
  Address.Address
]

const swap = "swap(address,uint256)"
const supplied = {
  name: "suppliers",
  effect: "allow",
  match: {
    chains: ["8453"],
    endpoints: ["/execute"],
    kinds: ["erc20.transfer"],
    tokens: [usdc],
    to: ["list:suppliers", wallet],
    maxAmount: "5000",
    hours: { from: "07:00", to: "18:00", days: [1, 2, 3, 4, 5] }
  }
}
const routed = {
  name: "router",
  effect: "allow",
  match: {
    kinds: ["call"],
    contracts: [router],
    selectors: [swap],
    args: [
      { index: 0, in: [supplier] },
      { index: 1, max: "1000" }
    ]
  }
}
const limits = [
  { name: "usdc", chain: "8453", asset: usdc, per: "day", max: "20000", approvals: "count" },
  { name: "batch", chain: "8453", asset: "calls", per: "request", max: "50" }
]
const body = { mode: "enforce", expiresAt: 0, paymasters: [router], rules: [supplied, routed], limits }

const decode = (json: unknown) =>
  Schema.decodeUnknownResult(Policy.Policy)(json, { onExcessProperty: "error", errors: "all" })
const policy = (json: unknown): Policy.Policy => Result.getOrThrow(decode(json))
const problem = (json: unknown): string => {
  const decoded = decode(json)
  return Result.isSuccess(decoded) ? "none" : String(decoded.failure)
}
const withRule = (match: unknown, effect = "allow") => ({ ...body, rules: [{ name: "a", effect, match }] })

// A Monday.
const monday = Date.UTC(2026, 10, 2, 12)
const circumstances = { chainId: 8453n, endpoint: "/execute", at: monday }
const lists = new Map([["suppliers", new Set([supplier])]])

const encode = (signature: string, args: ReadonlyArray<unknown>): Hex.Hex =>
  Hex.unsafe(new Interface([`function ${signature}`]).encodeFunctionData(signature.split("(")[0] ?? "", args))
const read = (target: Address.Address, data: Hex.Hex, value = 0n) =>
  Movements.of({ wallet, ledger: null }, [{ target, value, data }])
const paid = (to: Address.Address, amount: bigint, token = usdc) =>
  read(token, encode("transfer(address,uint256)", [to, amount])).movements
const judged = (
  movements: ReadonlyArray<Movements.Movement>,
  over: Partial<Policy.Circumstances> = {},
  own = policy(body)
) => Policy.judge(own, movements, { ...circumstances, ...over }, lists)

describe("policies", () => {
  it("are decoded, with or without their optional members", () => {
    expect(policy(body)).toMatchObject({ mode: "enforce", limits: [{ max: 20_000n }, { max: 50n }] })
    expect(policy({ mode: "observe", expiresAt: 1, rules: [] })).toMatchObject({ rules: [] })
    expect(
      Result.isSuccess(
        Schema.decodeUnknownResult(Policy.List)({ addresses: Array.from({ length: 1_001 }, () => usdc) })
      )
    ).toBe(false)
  })

  it("with an error say which", () => {
    expect(problem({ ...body, other: 1 })).toContain("other")
    expect(problem(withRule({ kinds: [] }))).toContain("kinds")
    expect(problem(withRule({ kinds: ["native"] }, "ask"))).toContain("effect")
    expect(problem(withRule({ kinds: ["call"], contracts: [router] }))).toContain(
      "expected contracts and selectors"
    )
    const called = { kinds: ["call"], contracts: [router] }
    expect(problem(withRule({ ...called, selectors: ["swap"] }))).toContain(
      "swap is not a function signature"
    )
    const args = (each: unknown, selectors = [swap]) =>
      problem(withRule({ ...called, selectors, args: [each] }))
    expect(args({ index: 2, max: "1" })).toContain(
      "parameter 2 of swap(address,uint256) is not a static value"
    )
    expect(args({ index: 0, max: "1" })).toContain("which is not an unsigned integer")
    expect(args({ index: 0, in: ["0x12"] })).toContain("0x12 is not of type address")
    expect(args({ index: 0 })).toContain("expected either in or max")
    expect(args({ index: 0, in: ["x"] }, ["swap(bytes)"])).toContain("is not a static value")
    expect(problem(withRule({ kinds: ["native"], to: ["list:"] }))).toContain("list")
    expect(problem(withRule({ kinds: ["native"], maxAmount: "-1" }))).toContain("maxAmount")
    expect(problem(withRule({ kinds: ["native"], hours: { from: "18:00", to: "07:00" } }))).toContain(
      "expected from before to"
    )
    expect(problem({ ...body, rules: [supplied, supplied] })).toContain("a name is used twice")
    expect(problem({ ...body, limits: [limits[0], limits[0]] })).toContain("a name is used twice")
    const many = Array.from({ length: 101 }, (_, at) => ({ ...supplied, name: `r${at}` }))
    expect(problem({ ...body, rules: many })).not.toBe("none")
    expect(problem({ ...body, rules: many.slice(1) })).toBe("none")
  })

  it("allow what a rule names, to the last unit and second, and refuse the rest", () => {
    expect(judged(paid(supplier, 5_000n))).toBeNull()
    expect(judged(paid(wallet, 5_000n))).toBeNull()
    expect(judged(paid(supplier, 5_001n))).toMatchObject({ rule: null })
    expect(judged(paid(stranger, 1n))).toMatchObject({ rule: null })
    expect(judged(paid(supplier, 1n, router))).toMatchObject({ rule: null })
    expect(judged(paid(supplier, 1n), { chainId: 1n })).toMatchObject({ rule: null })
    expect(judged(paid(supplier, 1n), { endpoint: "/create" })).toMatchObject({ rule: null })
    expect(judged(paid(supplier, 1n).concat(paid(stranger, 1n)))).toMatchObject({
      movement: { to: stranger }
    })
    expect(judged([])).toBeNull()
    const clock = (day: number, hours: number, minutes: number) =>
      judged(paid(supplier, 1n), { at: Date.UTC(2026, 10, day, hours, minutes, 59, 999) }) === null
    expect([clock(2, 6, 59), clock(2, 7, 0), clock(2, 17, 59), clock(2, 18, 0)]).toEqual([
      false,
      true,
      true,
      false
    ])
    expect([1, 2, 6, 7, 8].map((day) => clock(day, 12, 0))).toEqual([false, true, true, false, false])
  })

  it("refuse everything after their end", () => {
    const own = policy({ ...body, expiresAt: monday / 1_000 })
    expect(judged(paid(supplier, 1n), {}, own)).toBeNull()
    expect(judged(paid(supplier, 1n), { at: monday + 1 }, own)).toBe("expired")
  })

  it("compare the static parameters of a call as ethers encodes them", () => {
    forAll(
      [fc.oneof(address, fc.constant(supplier)), fc.oneof(uint(256), fc.nat(2_000).map(BigInt))],
      (to, amount) => {
        const { movements } = read(router, encode(swap, [to, amount]))
        expect(judged(movements) === null).toBe(to === supplier && amount <= 1_000n)
      }
    )
    const data = encode(swap, [supplier, 1n])
    expect(judged(read(router, data).movements)).toBeNull()
    expect(judged(read(stranger, data).movements)).not.toBeNull()
    expect(judged(read(router, data, 1n).movements)).toMatchObject({ movement: { kind: "native" } })
    expect(judged(read(router, Hex.slice(data, 0, 67)).movements)).not.toBeNull()
    expect(
      judged(read(router, Hex.unsafe(`${data.slice(0, 10)}1${data.slice(11)}`)).movements)
    ).not.toBeNull()
  })

  it("take the first rule that matches", () => {
    const refusing = { ...supplied, name: "none", effect: "refuse" }
    const rules = fc.shuffledSubarray([supplied, refusing, routed], { minLength: 0 })
    forAll([rules], (some) => {
      const first = some.find(({ name }) => name !== "router")
      const outcome = judged(paid(supplier, 1n), {}, policy({ ...body, rules: some }))
      expect(outcome === null).toBe(first?.effect === "allow")
      if (outcome !== null) expect(outcome).toMatchObject({ rule: first === undefined ? null : first.name })
    })
  })

  it("do not allow an unread call by any rule about calls", () => {
    const data = encode("transfer(address,uint256)", [supplier, 1n])
    const own = policy(
      withRule({ kinds: ["call"], contracts: [usdc], selectors: ["transfer(address,uint256)"] })
    )
    expect(judged(read(usdc, Hex.concat(data, Hex.unsafe("0x00"))).movements, {}, own)).not.toBeNull()
  })

  it("count what moves of an asset, allowances as their limit says", () => {
    const [first] = policy(body).limits ?? []
    if (first === undefined) return expect.fail("it is there")
    const approve = (amount: bigint) =>
      read(usdc, encode("approve(address,uint256)", [supplier, amount])).movements
    forAll([fc.array(uint(256)), fc.array(uint(256)), uint(128)], (sent, given, fees) => {
      const spending = {
        movements: [
          ...sent.flatMap((each) => paid(stranger, each)),
          ...given.flatMap(approve),
          ...paid(stranger, 7n, router)
        ],
        calls: 3,
        fees
      }
      const sum = (all: ReadonlyArray<bigint>) => all.reduce((total, each) => total + each, 0n)
      expect(Policy.amountOf(first, spending)).toBe(sum(sent) + sum(given))
      expect(Policy.amountOf({ ...first, approvals: "ignore" }, spending)).toBe(sum(sent))
      expect(
        (["fees", "ops", "calls", "native"] as const).map((asset) =>
          Policy.amountOf({ ...first, asset }, spending)
        )
      ).toEqual([fees, 1n, 3n, 0n])
    })
    const all = read(usdc, encode("setApprovalForAll(address,bool)", [stranger, true])).movements
    expect(
      Policy.amountOf({ ...first, approvals: "ignore" }, { movements: all, calls: 1, fees: 0n })
    ).toBeNull()
  })
})
