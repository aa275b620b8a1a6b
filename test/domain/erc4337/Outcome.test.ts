import { describe, expect, it } from "@effect/vitest"
import { Interface } from "ethers"
import * as fc from "fast-check"
import { canonical } from "../../../src/domain/erc4337/EntryPoint.js"
import * as Outcome from "../../../src/domain/erc4337/Outcome.js"
import type { RawLog } from "../../../src/domain/evm/RawLog.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { address, bytes32, forAll, hex, uint } from "../generators.js"

const entryPoint = canonical["v0.7"]

const abi = new Interface([
  "event UserOperationEvent(bytes32 indexed userOpHash, address indexed sender, address indexed paymaster, uint256 nonce, bool success, uint256 actualGasCost, uint256 actualGasUsed)",
  "event UserOperationRevertReason(bytes32 indexed userOpHash, address indexed sender, uint256 nonce, bytes revertReason)",
  "event PostOpRevertReason(bytes32 indexed userOpHash, address indexed sender, uint256 nonce, bytes revertReason)",
  "event AccountDeployed(bytes32 indexed userOpHash, address indexed sender, address factory, address paymaster)",
  "event BeforeExecution()",
  "event SignatureAggregatorChanged(address indexed aggregator)",
  "event Transfer(address indexed from, address indexed to, uint256 value)"
])

type Emitted = Omit<RawLog, "logIndex">

const emit = (name: string, args: ReadonlyArray<unknown>, by: Address.Address = entryPoint): Emitted => {
  const { topics, data } = abi.encodeEventLog(name, args)
  return {
    address: by,
    topics: topics.map((topic) => Hex.unsafe32(typeof topic === "string" ? topic : "")),
    data: Hex.unsafe(data)
  }
}

/** Logs numbered in order, as in a receipt. */
const receipt = (first: number, logs: ReadonlyArray<Emitted>): ReadonlyArray<RawLog> =>
  logs.map((log, index) => ({ ...log, logIndex: first + index }))

const anOp = fc.record({
  hash: bytes32,
  sender: address,
  nonce: uint(256),
  success: fc.boolean(),
  cost: uint(256),
  used: uint(256),
  deployed: fc.boolean(),
  /** Revert data; empty ones are not logged. */
  revert: hex(100),
  inPostOp: fc.boolean(),
  transfers: fc.nat(3)
})
type Op = typeof anOp extends fc.Arbitrary<infer Value> ? Value : never

const transfer = (it: Op) => emit("Transfer", [it.sender, Address.zero, 1n], it.sender)

/** Logs of an EntryPoint for this bundle. */
const bundle = (ops: ReadonlyArray<Op>): ReadonlyArray<Emitted> => [
  ...ops.flatMap((it) =>
    it.deployed ? [transfer(it), emit("AccountDeployed", [it.hash, it.sender, it.sender, Address.zero])] : []
  ),
  begun,
  ...ops.flatMap((it) => [
    ...Array.from({ length: it.transfers }, () => transfer(it)),
    ...(it.success || it.revert === "0x"
      ? []
      : [
          emit(it.inPostOp ? "PostOpRevertReason" : "UserOperationRevertReason", [
            it.hash,
            it.sender,
            it.nonce,
            it.revert
          ])
        ]),
    emit("UserOperationEvent", [it.hash, it.sender, Address.zero, it.nonce, it.success, it.cost, it.used])
  ])
]

const ops = fc.uniqueArray(anOp, { selector: ({ hash }) => hash, minLength: 1, maxLength: 6 })
const begun = emit("BeforeExecution", [])
const hash = `0x${"11".repeat(32)}`
const ended = emit("UserOperationEvent", [hash, entryPoint, Address.zero, 1n, true, 2n, 3n])

describe("Outcome", () => {
  it("the outcome of every op of a bundle is read from the EntryPoint's logs of its hash", () => {
    forAll([ops, fc.nat(1000)], (ops, first) => {
      const logs = receipt(first, bundle(ops))
      const outcomes = Outcome.parse(entryPoint, logs)
      expect([...outcomes.keys()]).toEqual(ops.map((it) => it.hash))
      for (const it of ops)
        expect(outcomes.get(it.hash)).toMatchObject({
          userOpHash: it.hash,
          sender: it.sender,
          nonce: it.nonce,
          success: it.success,
          deployed: it.deployed,
          actualGasCost: it.cost,
          actualGasUsed: it.used,
          revertData: it.success || it.revert === "0x" ? null : it.revert
        })
    })
  })

  it("owns the logs of its own execution and no others", () => {
    forAll([ops, fc.nat(1000)], (ops, first) => {
      const logs = receipt(first, bundle(ops))
      const outcomes = Outcome.parse(entryPoint, logs)
      const before = logs.find((log) => log.topics[0] === begun.topics[0])
      let next = (before?.logIndex ?? 0) + 1
      for (const it of ops) {
        const range = outcomes.get(it.hash)?.logs
        expect(range?.first).toBe(next)
        const own = logs.filter((log) => log.logIndex >= next && log.logIndex <= (range?.last ?? -1))
        expect(own.filter((log) => log.address === it.sender)).toHaveLength(it.transfers)
        expect(own.at(-1)?.topics[1]).toBe(it.hash)
        next = (range?.last ?? 0) + 1
      }
      expect(next).toBe(first + logs.length)
    })
  })

  it("an outcome is found in two bundles, an aggregator's bundle, between other logs", () => {
    forAll([ops, fc.nat(5)], (ops, cut) => {
      const [a, b] = [ops.slice(0, cut % ops.length), ops.slice(cut % ops.length)]
      const noise = ops.map(transfer)
      const logs = receipt(0, [
        ...noise,
        ...bundle(a),
        ...noise,
        begun,
        ...noise,
        emit("SignatureAggregatorChanged", [entryPoint]),
        ...bundle(b).filter((log) => log.topics[0] !== begun.topics[0]),
        emit("SignatureAggregatorChanged", [Address.zero]),
        ...noise
      ])
      const outcomes = Outcome.parse(entryPoint, logs)
      expect([...outcomes.keys()]).toEqual(ops.map((it) => it.hash))
      const ranges = [...outcomes.values()].map((outcome) => outcome.logs)
      for (const [index, range] of ranges.entries()) {
        expect(range.first).toBeLessThanOrEqual(range.last)
        expect(range.first).toBeGreaterThan(ranges[index - 1]?.last ?? -1)
      }
    })
  })

  it("an outcome cannot be imitated by another contract", () => {
    forAll([ops, address], (ops, liar) => {
      const logs = bundle(ops).map((log) => ({ ...log, address: liar }))
      expect(Outcome.parse(entryPoint, receipt(0, logs)).size).toBe(0)
    })
  })

  it("an outcome is not read from malformed or foreign logs", () => {
    const bad: ReadonlyArray<Emitted> = [
      ...[0, 1, 3].map((count) => ({ ...ended, topics: ended.topics.slice(0, count) })),
      { ...ended, topics: [Hex.unsafe32(`0x${"ee".repeat(32)}`), ...ended.topics.slice(1)] },
      ...["0x", ended.data.slice(0, -2), `${ended.data}00`].map((data) => ({
        ...ended,
        data: Hex.unsafe(data)
      }))
    ]
    expect(Outcome.parse(entryPoint, receipt(0, [ended])).size).toBe(1)
    expect(Outcome.parse(entryPoint, receipt(0, bad)).size).toBe(0)
    expect(Outcome.parse(entryPoint, []).size).toBe(0)
  })

  it("an outcome begins behind the change to its aggregator", () => {
    const moved = emit("Transfer", [entryPoint, Address.zero, 1n], Address.zero)
    const logs = receipt(5, [begun, moved, emit("SignatureAggregatorChanged", [entryPoint]), ended])
    expect(Outcome.parse(entryPoint, logs).get(Hex.unsafe32(hash))?.logs).toEqual({ first: 8, last: 8 })
  })

  it("a successful outcome has no revert data, whatever other logs its hash has", () => {
    forAll([anOp], (it) => {
      const revert = emit("UserOperationRevertReason", [it.hash, it.sender, it.nonce, "0x01"])
      const logs = receipt(0, [revert, ...bundle([{ ...it, success: true }])])
      expect(Outcome.parse(entryPoint, logs).get(it.hash)?.revertData).toBeNull()
    })
  })

  it("an outcome does not depend on the order in which a node lists the logs", () => {
    forAll([ops], (ops) => {
      const logs = receipt(7, bundle(ops))
      expect(Outcome.parse(entryPoint, [...logs].reverse())).toEqual(Outcome.parse(entryPoint, logs))
    })
  })
})

describe("the logs of some of a bundle's ops", () => {
  const logged = (all: ReadonlyArray<Op>, first: number) =>
    receipt(first, [
      ...all.map(({ hash, sender }) => emit("AccountDeployed", [hash, sender, Address.zero, Address.zero])),
      begun,
      ...all.flatMap((it) => [
        ...Array.from({ length: it.transfers }, () => transfer(it)),
        emit("UserOperationEvent", [it.hash, it.sender, Address.zero, it.nonce, it.success, it.cost, it.used])
      ])
    ])

  it("logs of ops are a slice of the transaction's logs in order, for all ops the whole", () => {
    forAll([ops, fc.nat(50), fc.nat(5)], (ops, first, many) => {
      const logs = logged(ops, first)
      const own = new Set(ops.slice(0, many).map(({ hash }) => hash))
      const slice = Outcome.logsOf(entryPoint, logs, own)
      expect(logs.filter((log) => slice.includes(log))).toEqual(slice)
      if (own.size === ops.length) expect(slice).toEqual(logs)
      if (own.size === 0) expect(slice).toEqual([])
    })
  })

  it("an op's logs are its execution's, and the validation's that name its wallet", () => {
    const token = Address.unsafe(`0x${"70".repeat(20)}`)
    const [a, b, c] = ["aa", "bb", "cc"].map((byte) => Address.unsafe(`0x${byte.repeat(20)}`))
    const [hashA, hashB] = ["a1", "b1"].map((byte) => Hex.unsafe32(`0x${byte.repeat(32)}`))
    if (hashA === undefined || hashB === undefined) return
    const moved = (from: unknown) => emit("Transfer", [from, Address.zero, 1n], token)
    const ended = (hash: unknown, sender: unknown) =>
      emit("UserOperationEvent", [hash, sender, Address.zero, 1n, true, 2n, 3n])
    const logs = receipt(0, [
      ...[moved(a), moved(b), begun],
      ...[moved(c), ended(hashA, a)],
      ...[moved(a), ended(hashB, b)]
    ])
    const of = (hash: Hex.Bytes32) =>
      Outcome.logsOf(entryPoint, logs, new Set([hash])).map(({ logIndex }) => logIndex)
    expect(of(hashA)).toEqual([0, 3, 4])
    expect(of(hashB)).toEqual([1, 5, 6])
  })

  it("logs of two requests in one bundle are disjoint, complete, and name only their own ops", () => {
    forAll([ops, fc.nat(50), fc.nat(5)], (ops, first, many) => {
      // The wallets differ: validation logs are distinguished by wallet.
      fc.pre(new Set(ops.map(({ sender }) => sender)).size === ops.length)
      fc.pre(ops.every(({ sender }) => sender !== entryPoint && sender !== Address.zero))
      // A hash is not an address.
      fc.pre(ops.every(({ hash }) => !hash.startsWith(`0x${"00".repeat(12)}`)))
      const logs = logged(ops, first)
      const parts = [ops.slice(0, many), ops.slice(many)].map((part) => part.map(({ hash }) => hash))
      const [one, other] = parts.map((hashes) => Outcome.logsOf(entryPoint, logs, new Set(hashes)))
      if (one === undefined || other === undefined || parts.some(({ length }) => length === 0)) return
      expect(one.filter((log) => other.includes(log))).toEqual([])
      const both = [...one, ...other].map(({ logIndex }) => logIndex).sort((a, b) => a - b)
      // Only the log that marks the beginning of the executions belongs to neither.
      expect(logs.length - both.length).toBe(1)
      for (const hash of parts[1] ?? []) expect(one.flatMap(({ topics }) => topics)).not.toContain(hash)
    })
  })
})

it("executeStatus is 1 when all succeeded, 4 when some did, 0 when none did", () => {
  forAll([fc.array(fc.boolean())], (outcomes) => {
    const good = outcomes.filter(Boolean).length
    expect(Outcome.executeStatus(outcomes)).toBe(good === 0 ? 0 : good === outcomes.length ? 1 : 4)
  })
})

describe("Outcome.createStatus", () => {
  it.each([
    [["deployed"], 1],
    [["deployed", "deployed"], 1],
    [["existed"], 2],
    [["existed", "existed"], 2],
    [["deployed", "existed"], 3],
    [["deployed", "failed"], 3],
    [["existed", "deployed", "failed"], 3],
    [["failed"], 0],
    [["existed", "failed"], 0],
    [[], 0]
  ] as const)("of %j is %i", (creations, status) => {
    expect(Outcome.createStatus(creations)).toBe(status)
  })
})
