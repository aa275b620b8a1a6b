import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { Interface } from "ethers"
import * as fc from "fast-check"
import * as Documents from "../../../src/domain/policy/Documents.js"
import * as Movements from "../../../src/domain/policy/Movements.js"
import * as Policy from "../../../src/domain/policy/Policy.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as TypedData from "../../../src/domain/signature/typed/TypedData.js"
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

const members = "address owner,address spender,uint256 value,uint256 nonce,uint256 deadline"
/** A permit of 7 for the router, in this domain. */
const permitOf = (domain: object) => {
  const Permit = members.split(",").map((each) => ({ type: each.split(" ")[0], name: each.split(" ")[1] }))
  const message = { owner: wallet, spender: router, value: 7, nonce: 0, deadline: 0 }
  const document = { types: { Permit }, primaryType: "Permit", domain, message }
  return Documents.of(Result.getOrThrow(TypedData.parts(document, {})))
}

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
    const signed = { kinds: ["sign.typedData"] }
    expect(problem(withRule({ ...signed, domains: [{}] }))).toContain(
      "expected name, chainId or verifyingContract"
    )
    expect(problem(withRule({ ...signed, domains: [{ chain: "1" }] }))).toContain("chain")
    expect(problem(withRule({ ...signed, domains: [{ chainId: "0x1" }] }))).toContain("expected a chain id")
    for (const each of [{ domains: [{ name: "a" }] }, { primaryTypes: ["Permit"] }])
      expect(problem(withRule({ kinds: ["erc20.approve"], ...each }))).toContain(
        "domains, primaryTypes: expected kind sign.typedData"
      )
    expect(problem({ ...body, rules: [supplied, supplied] })).toContain("name: rules[0] has it too")
    expect(problem({ ...body, limits: [limits[0], limits[0]] })).toContain("name: limits[0] has it too")
    const many = Array.from({ length: 101 }, (_, at) => ({ ...supplied, name: `r${at}` }))
    expect(problem({ ...body, rules: many })).not.toBe("none")
    expect(problem({ ...body, rules: many.slice(1) })).toBe("none")
  })

  it("allow what a rule names, to the last unit and second, and refuse the rest", () => {
    expect(judged(paid(supplier, 5_000n))).toBeNull()
    expect(judged(paid(wallet, 5_000n))).toBeNull()
    const unfit = (member: string, rule = "suppliers") => ({ rule: null, nearest: { rule, member } })
    expect(judged(paid(supplier, 5_001n))).toMatchObject(unfit("maxAmount"))
    expect(judged(paid(stranger, 1n))).toMatchObject(unfit("to"))
    expect(judged(paid(supplier, 1n, router))).toMatchObject(unfit("tokens"))
    expect(judged(paid(supplier, 1n), { chainId: 1n })).toMatchObject(unfit("chains"))
    expect(judged(paid(supplier, 1n), { endpoint: "/create" })).toMatchObject(unfit("endpoints"))
    const calls = [
      [stranger, swap, 1n],
      [router, "sweep(address,uint256)", 1n],
      [router, swap, 1_001n]
    ] as const
    expect(
      calls.map(([to, name, amount]) => judged(read(to, encode(name, [supplier, amount])).movements))
    ).toMatchObject(["contracts", "selectors", "args"].map((member) => unfit(member, "router")))
    expect(judged(read(stranger, "0x" as Hex.Hex, 1n).movements)).toMatchObject({ rule: null, nearest: null })
    const near = { ...supplied, name: "near", match: { ...supplied.match, to: [stranger], maxAmount: "5" } }
    const both = policy({
      ...body,
      rules: [{ ...supplied, effect: "refuse" }, routed, { ...supplied, name: "far" }, near]
    })
    expect(judged(paid(stranger, 6n), {}, both)).toMatchObject(unfit("maxAmount", "near"))
    expect(judged(paid(supplier, 1n).concat(paid(stranger, 1n)))).toMatchObject({
      movement: { to: stranger }
    })
    const unknown = (effect: string) => {
      const named = { kinds: ["erc20.transfer"], to: ["list:none"] }
      const all = { name: "all", effect: "allow", match: { kinds: ["erc20.transfer"] } }
      const rules = [{ name: "none", effect, match: named }, ...(effect === "refuse" ? [all] : [])]
      return judged(paid(supplier, 1n), {}, policy({ ...body, rules }))
    }
    expect(unknown("allow")).toMatchObject(unfit("to", "none"))
    expect(unknown("refuse")).toMatchObject({ rule: "none" })
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

  it("with a rule that refuses an argument refuse what an old contract could read as it", () => {
    const { args, ...match } = routed.match
    const refusing = { name: "no", effect: "refuse", match: { ...match, args: args.slice(0, 1) } }
    const own = policy({ ...body, rules: [refusing, { ...routed, match }] })
    const data = encode(swap, [supplier, 1n])
    const outcome = (given: Hex.Hex) => judged(read(router, given).movements, {}, own)
    expect(outcome(encode(swap, [stranger, 1n]))).toBeNull()
    const dirty = Hex.unsafe(`${data.slice(0, 10)}1${data.slice(11)}`)
    for (const each of [data, dirty, Hex.slice(data, 0, 35)])
      expect(outcome(each)).toMatchObject({ rule: "no" })
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

  it("about signatures name kinds, domains and primary types", () => {
    const full = { name: "USD Coin", chainId: 8453, verifyingContract: usdc }
    const typed = { kinds: ["sign.typedData", "erc20.approve"] }
    const outcome = (match: object, movements: ReadonlyArray<Movements.Movement>, chainId = 8453n) =>
      judged(movements, { chainId }, policy(withRule(match))) === null
    for (const each of [
      {},
      { domains: [full].map((own) => ({ ...own, chainId: "8453" })) },
      { domains: [{ name: "other" }, { verifyingContract: usdc }], primaryTypes: ["Mail", "Permit"] }
    ])
      expect(outcome({ ...typed, ...each }, permitOf(full))).toBe(true)
    for (const each of [
      { domains: [{ name: "USD Coin", chainId: "1" }] },
      { domains: [{ verifyingContract: router }] },
      { primaryTypes: ["Mail"] },
      { to: [router] },
      { kinds: ["sign.typedData"] },
      { kinds: ["erc20.approve"] },
      { kinds: ["sign.hash", "sign.message", "call"], contracts: [usdc], selectors: [swap] }
    ])
      expect(outcome({ ...typed, ...each }, permitOf(full))).toBe(false)
    expect(outcome({ kinds: ["sign.hash"] }, [Documents.hash])).toBe(true)
    expect(outcome({ kinds: ["sign.message", "sign.typedData"] }, [Documents.hash])).toBe(false)
    expect(outcome({ kinds: ["sign.hash"] }, [Documents.message])).toBe(false)
    expect(outcome({ ...typed, primaryTypes: ["Permit"] }, paid(wallet, 1n))).toBe(false)
  })

  it("refuse documents that do not name their token or chain where a rule or limit does", () => {
    const permit = permitOf({})
    const everything = {
      name: "all",
      effect: "allow",
      match: { kinds: ["sign.typedData", "erc20.approve"] }
    }
    const outcome = (match: object) =>
      Policy.judge(
        policy({
          ...body,
          rules: [{ name: "a", effect: "refuse", match: { kinds: ["erc20.approve"], ...match } }, everything]
        }),
        permit,
        { ...circumstances, chainId: null },
        lists
      )
    for (const each of [{ tokens: [usdc] }, { chains: ["1"] }, { contracts: [usdc] }])
      expect(outcome(each)).toMatchObject({ rule: "a" })
    for (const each of [{ chainId: "1" }, { verifyingContract: usdc }])
      expect(outcome({ kinds: ["sign.typedData"], domains: [each] })).toMatchObject({ rule: "a" })
    expect(outcome({ kinds: ["sign.typedData"], domains: [{ chainId: "1", name: "other" }] })).toBeNull()
    expect(outcome({ to: [stranger] })).toBeNull()
    for (const each of [{ tokens: [usdc] }, { chains: ["1"] }, { contracts: [usdc] }])
      expect(
        judged(permit.slice(1), { chainId: null }, policy(withRule({ kinds: ["erc20.approve"], ...each })))
      ).toMatchObject({ rule: null })
    const [limit] = policy(body).limits ?? []
    if (limit === undefined) return expect.fail("it is there")
    const of = (asset: Policy.Limit["asset"]) =>
      Policy.amountOf({ ...limit, asset }, { movements: permit, calls: 0, fees: 0n })
    expect([of(usdc), of("native"), of("ops")]).toEqual([null, 0n, 0n])
  })
})
