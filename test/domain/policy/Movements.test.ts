import { describe, expect, it } from "@effect/vitest"
import { FunctionFragment, Interface, MaxUint256, type ParamType } from "ethers"
import * as fc from "fast-check"
import * as Movements from "../../../src/domain/policy/Movements.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Ledger from "../../../src/domain/wallet/Ledger.js"
import type * as WalletCalls from "../../../src/domain/wallet/WalletCalls.js"
import { address, bytes32, forAll, hex, uint } from "../generators.js"

/** Calls as ethers encodes them, with what each is expected to move. */

const wallet = Address.unsafe(`0x${"a1".repeat(20)}`)
const ledger = Address.unsafe(`0x${"1e".repeat(20)}`)
const multicall3 = Address.unsafe("0xcA11bde05977b3631167028862bE2a173976CA11")
const token = address.filter((each) => ![wallet, ledger, multicall3, Movements.permit2].includes(each))
const context = { wallet, ledger }

type Expected = Pick<Movements.Movement, "kind" | "asset" | "to" | "amount">

interface Sample {
  readonly call: WalletCalls.Call
  readonly moves: ReadonlyArray<Expected>
  readonly calls: number
}

const encode = (signature: string, args: ReadonlyArray<unknown>): Hex.Hex =>
  Hex.unsafe(new Interface([`function ${signature}`]).encodeFunctionData(signature.split("(")[0] ?? "", args))

/** A call; its value is a movement as well. */
const sample = (
  target: Address.Address,
  value: bigint,
  data: Hex.Hex,
  moves: ReadonlyArray<Expected>,
  calls = 1
): Sample => {
  const native: Expected = { kind: "native", asset: "native", to: target, amount: value }
  return {
    call: { target, value, data },
    moves: value > 0n || data === Hex.empty ? [native, ...moves] : moves,
    calls
  }
}

const value = fc.oneof(fc.constant(0n), uint(256))

type Value = ReturnType<typeof JSON.parse>

/** Kind, asset, recipient and amount of each movement of a function. */
type Moves = (
  args: ReadonlyArray<Value>,
  contract: Address.Address
) => ReadonlyArray<readonly [Movements.Kind, Expected["asset"], Expected["to"], bigint | null]>

const move =
  (kind: Movements.Kind, to: number, amount: number): Moves =>
  (args, contract) => [[kind, contract, args[to], args[amount]]]
const nft: Moves = ([, to], contract) => [["erc721.transfer", contract, to, 1n]]

const tokens: Readonly<Record<string, Moves>> = {
  "transfer(address,uint256)": move("erc20.transfer", 0, 1),
  "transferFrom(address,address,uint256)": move("erc20.transfer", 1, 2),
  ...Object.fromEntries(
    ["uint8,bytes32,bytes32", "bytes"].flatMap((proof) =>
      ["transfer", "receive"].map((name) => [
        `${name}WithAuthorization(address,address,uint256,uint256,uint256,bytes32,${proof})`,
        move("erc20.transfer", 1, 2)
      ])
    )
  ),
  "approve(address,uint256)": move("erc20.approve", 0, 1),
  "increaseAllowance(address,uint256)": move("erc20.approve", 0, 1),
  "permit(address,address,uint256,uint256,uint8,bytes32,bytes32)": move("erc20.approve", 1, 2),
  "permit(address,address,uint256,uint256,bytes)": move("erc20.approve", 1, 2),
  "permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)": ([, to, , , allowed], contract) => [
    ["erc20.approve", contract, to, allowed ? MaxUint256 : 0n]
  ],
  "safeTransferFrom(address,address,uint256)": nft,
  "safeTransferFrom(address,address,uint256,bytes)": nft,
  "safeTransferFrom(address,address,uint256,uint256,bytes)": move("erc1155.transfer", 1, 3),
  "safeBatchTransferFrom(address,address,uint256[],uint256[],bytes)": ([, to, , amounts], contract) => [
    ["erc1155.transfer", contract, to, amounts.reduce((sum: bigint, each: bigint) => sum + each, 0n)]
  ],
  "setApprovalForAll(address,bool)": ([to, allowed], contract) => [
    ["approvalForAll", contract, to, allowed ? null : 0n]
  ]
}

const permits: Readonly<Record<string, Moves>> = {
  "approve(address,address,uint160,uint48)": ([asset, to, amount]) => [["erc20.approve", asset, to, amount]],
  "permit(address,((address,uint160,uint48,uint48),address,uint256),bytes)": ([, [[asset, amount], to]]) => [
    ["erc20.approve", asset, to, amount]
  ],
  "permit(address,((address,uint160,uint48,uint48)[],address,uint256),bytes)": ([, [grants, to]]) =>
    grants.map(([asset, amount]: Value) => ["erc20.approve", asset, to, amount]),
  "transferFrom(address,address,uint160,address)": ([, to, amount, asset]) => [
    ["erc20.transfer", asset, to, amount]
  ],
  "transferFrom((address,address,uint160,address)[])": ([all]) =>
    all.map(([, to, amount, asset]: Value) => ["erc20.transfer", asset, to, amount])
}

/** Functions that only the wallet itself may call. */
const admin: Readonly<Record<string, Moves>> = {
  "setConfig((uint8,uint8,address[],(bytes32,bytes32)[]))": () => [["wallet.admin", null, null, 0n]],
  "setRecovery(address,uint48)": ([to]) => [["wallet.admin", null, to, 0n]],
  "cancelRecovery()": () => [["wallet.admin", null, null, 0n]],
  "withdrawTo(address,address,uint256)": ([, to, amount]) => [["wallet.admin", "native", to, amount]]
}

const call: Expected = { kind: "call", asset: null, to: null, amount: 0n }

const valueOf = ({ arrayChildren, components, type }: ParamType): fc.Arbitrary<unknown> => {
  if (arrayChildren !== null) return fc.array(valueOf(arrayChildren), { maxLength: 3 })
  if (components !== null) return fc.tuple(...components.map(valueOf))
  if (type.startsWith("uint")) return uint(Number(type.slice(4)))
  return type === "address" ? address : type === "bool" ? fc.boolean() : type === "bytes" ? hex(70) : bytes32
}

/** Calls of these functions, with any arguments. A list without elements moves nothing: the call is not read. */
const callsOf = (
  functions: Readonly<Record<string, Moves>>,
  contract: fc.Arbitrary<Address.Address>,
  wei: fc.Arbitrary<bigint> = value
) =>
  fc.constantFrom(...Object.entries(functions)).chain(([signature, moves]) => {
    const { inputs } = FunctionFragment.from(`function ${signature}`)
    return fc.tuple(contract, wei, fc.tuple(...inputs.map(valueOf))).map(([target, value, args]) => {
      const expected = moves(args, target).map(([kind, asset, to, amount]) => ({ kind, asset, to, amount }))
      return sample(target, value, encode(signature, args), expected.length === 0 ? [call] : expected)
    })
  })

const tokenCall = callsOf(tokens, token)
const permitCall = callsOf(permits, fc.constant(Movements.permit2))
const adminCall = callsOf(admin, fc.constant(wallet), fc.constant(0n))

const payment = fc.tuple(token, value).map(([to, wei]) => sample(to, wei, Hex.empty, []))

/** An unknown function. */
const unknown = fc
  .tuple(token, value, fc.stringMatching(/^[a-z]{1,9}Unknown$/), uint(256))
  .map(([to, wei, name, word]) => sample(to, wei, encode(`${name}(uint256)`, [word]), [call]))

const leaf = fc.oneof(tokenCall, permitCall, payment, unknown)

const sums = (all: ReadonlyArray<Sample>) => ({
  moves: all.flatMap(({ moves }) => moves),
  calls: all.reduce((sum, { calls }) => sum + calls, 0)
})

/** Batches of calls by the wallet; those of another sender have no calls of the wallet to itself. */
const { tree } = fc.letrec<{ tree: Sample; foreign: Sample }>((tie) => {
  const some = (name: "tree" | "foreign") => fc.array(tie(name), { minLength: 1, maxLength: 4 })
  const three = (all: ReadonlyArray<Sample>) =>
    all.map(({ call: { data, target, value: wei } }) => [target, wei, data] as const)
  const batch = some("tree").map((all) => {
    const { calls, moves } = sums(all)
    return sample(wallet, 0n, encode("executeBatch((address,uint256,bytes)[])", [three(all)]), moves, calls)
  })
  const single = tie("tree").map(({ call: { data, target, value: wei }, calls, moves }) =>
    sample(wallet, 0n, encode("execute(address,uint256,bytes)", [target, wei, data]), moves, calls)
  )
  const aggregated = some("foreign").chain((all) => {
    const { calls, moves } = sums(all)
    const three3 = three(all).map(([target, wei, data]) => [target, true, wei, data])
    const free = all.every(({ call: { value: wei } }) => wei === 0n)
    const pairs = three(all).map(([target, , data]) => [target, data])
    const made = (signature: string, args: ReadonlyArray<unknown>) =>
      sample(multicall3, 0n, encode(signature, args), [call, ...moves], calls)
    return fc.constantFrom(
      made("aggregate3Value((address,bool,uint256,bytes)[])", [three3]),
      ...(free
        ? [
            made("aggregate((address,bytes)[])", [pairs]),
            made("blockAndAggregate((address,bytes)[])", [pairs]),
            made("tryAggregate(bool,(address,bytes)[])", [true, pairs]),
            made("tryBlockAndAggregate(bool,(address,bytes)[])", [false, pairs]),
            made("aggregate3((address,bool,bytes)[])", [pairs.map(([target, data]) => [target, false, data])])
          ]
        : [])
    )
  })
  const delegated = fc.array(tokenCall, { minLength: 1, maxLength: 4 }).map((all) => {
    const target = all[0]?.call.target ?? wallet
    const own = all.map(({ call: { data }, moves }) => ({
      data,
      // Without its value, and of the one contract.
      moves: moves.filter(({ kind }) => kind !== "native").map((each) => ({ ...each, asset: target }))
    }))
    return sample(
      target,
      0n,
      encode("multicall(bytes[])", [own.map(({ data }) => data)]),
      own.flatMap(({ moves }) => moves),
      own.length
    )
  })
  return {
    tree: fc.oneof({ maxDepth: 2 }, leaf, adminCall, batch, single, aggregated, delegated),
    foreign: fc.oneof({ maxDepth: 2 }, leaf, delegated)
  }
})

const expectRead = (all: ReadonlyArray<Sample>) => {
  const { calls, movements } = Movements.of(
    context,
    all.map((each) => each.call)
  )
  const { calls: most, moves } = sums(all)
  expect(movements.map(({ amount, asset, kind, to }) => ({ kind, asset, to, amount }))).toEqual(moves)
  expect(calls).toBe(most)
}

const bare = (data: Hex.Hex, target = Address.unsafe(`0x${"70".repeat(20)}`)): WalletCalls.Call => ({
  target,
  value: 0n,
  data
})

const kinds = (calls: ReadonlyArray<WalletCalls.Call>) =>
  Movements.of(context, calls).movements.map(({ kind, selector }) => [kind, selector])

describe("movements", () => {
  it("are read from each function as ethers encodes it", () => {
    forAll([fc.oneof(leaf, adminCall)], (one) => expectRead([one]), { numRuns: 500 })
  })

  it("are read from calls in batches, in their order", () => {
    forAll([fc.array(tree, { maxLength: 4 })], expectRead, { numRuns: 300 })
  })

  it("are not read from another encoding of a known function, which is a call without a selector", () => {
    forAll([fc.oneof(tokenCall, permitCall), fc.nat(), hex(40)], ({ call: { data, target } }, at, tail) => {
      const digits = data.slice(10)
      const place = 10 + (at % Math.max(1, digits.length))
      const flipped = data[place] === "f" ? "e" : "f"
      const changed = Hex.unsafe(`${data.slice(0, place)}${flipped}${data.slice(place + 1)}`)
      for (const other of [changed, Hex.concat(data, tail), Hex.unsafe(data.slice(0, -2))]) {
        if (other === data) continue
        const [movement] = Movements.of(context, [bare(other, target)]).movements
        // Still canonical, of other values; or unread.
        if (movement?.kind === "call") expect(movement.selector).toBeNull()
        else expect(Hex.size(other)).toBe(Hex.size(data))
      }
      expect(kinds([bare(Hex.unsafe(data.slice(0, -2)), target)])).toEqual([["call", null]])
    })
  })

  it("are not read from dirty address words and data with a tail", () => {
    const data = encode("transfer(address,uint256)", [wallet, 1n])
    const dirty = Hex.unsafe(`${data.slice(0, 10)}1${data.slice(11)}`)
    expect(kinds([bare(dirty)])).toEqual([["call", null]])
    expect(kinds([bare(Hex.concat(data, Hex.unsafe("0x00")))])).toEqual([["call", null]])
    expect(kinds([bare(Hex.unsafe("0xa9059c"))])).toEqual([["call", null]])
    expect(kinds([bare(Hex.unsafe("0xdeadbeef"))])).toEqual([["call", "0xdeadbeef"]])
  })

  it("are not read from batches that are too deep, empty or too long", () => {
    const wrapped = (depth: number): Hex.Hex =>
      depth === 0
        ? encode("transfer(address,uint256)", [wallet, 1n])
        : encode("execute(address,uint256,bytes)", [
            depth === 1 ? Movements.permit2 : wallet,
            0n,
            wrapped(depth - 1)
          ])
    expect(kinds([bare(wrapped(4), wallet)])).toEqual([["erc20.transfer", "0xa9059cbb"]])
    expect(kinds([bare(wrapped(5), wallet)])).toEqual([["call", null]])
    const many = (count: number) =>
      encode("executeBatch((address,uint256,bytes)[])", [
        Array.from({ length: count }, () => [ledger, 1n, "0x"])
      ])
    expect(kinds([bare(many(0), wallet)])).toEqual([["call", null]])
    expect(kinds([bare(many(1_024), wallet)])).toHaveLength(1_024)
    expect(kinds([bare(many(1_025), wallet)])).toEqual([["call", null]])
    expect(kinds([bare(many(1_000), wallet), bare(many(25), wallet)])).toHaveLength(1_001)
    const outer = encode("aggregate((address,bytes)[])", [[[multicall3, encode("getBlockNumber()", [])]]])
    expect(kinds([bare(outer, multicall3)])).toEqual([
      ["call", "0x252dba42"],
      ["call", "0x42cbb15c"]
    ])
    expect(kinds([bare(encode("aggregate((address,bytes)[])", [[]]), multicall3)])).toEqual([
      ["call", "0x252dba42"],
      ["call", null]
    ])
  })

  it("leave out the service's own calls to the ledger, of no value", () => {
    const record = bare(Ledger.record(Hex.unsafe32(`0x${"01".repeat(32)}`)), ledger)
    expect(Movements.of(context, [record])).toEqual({ movements: [], calls: 0 })
    expect(kinds([{ ...record, value: 1n }]).map(([kind]) => kind)).toEqual(["native", "call"])
    expect(Movements.of({ wallet, ledger: null }, [record]).calls).toBe(1)
  })

  it("are not read from a batch function of a different contract, or of a different sender", () => {
    const data = encode("execute(address,uint256,bytes)", [ledger, 1n, "0x"])
    expect(kinds([bare(data)])).toEqual([["call", data.slice(0, 10)]])
    const inner = encode("aggregate((address,bytes)[])", [[[wallet, data]]])
    expect(kinds([bare(inner, multicall3)])).toEqual([
      ["call", "0x252dba42"],
      ["call", data.slice(0, 10)]
    ])
  })
})
