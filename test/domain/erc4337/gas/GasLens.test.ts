import { describe, expect, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { Interface, id } from "ethers"
import fc from "fast-check"
import lens from "../../../../contracts/artifacts/GasLens.json" with { type: "json" }
import * as EntryPoint from "../../../../src/domain/erc4337/EntryPoint.js"
import { gasLensRuntime } from "../../../../src/domain/erc4337/gas/GasLens.generated.js"
import * as GasLens from "../../../../src/domain/erc4337/gas/GasLens.js"
import * as LensOverrides from "../../../../src/domain/erc4337/gas/LensOverrides.js"
import * as Address from "../../../../src/domain/primitives/Address.js"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import { toProbe } from "../../../scenarios/lens/Abis.js"
import * as Work from "../../../support/Work.js"
import { address, bytes32, forAll, hex, uint } from "../../generators.js"

const abi = new Interface(lens.abi)
const entryPoint = EntryPoint.canonical["v0.7"]
/** EXTCODEHASH (EIP-1052) of a missing account, and of an account without code. */
const codeless: ReadonlyArray<Hex.Hex> = [
  Hex.unsafe(`0x${"00".repeat(32)}`),
  Hex.unsafe("0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470")
]
const figures = <Name extends string>(...names: ReadonlyArray<Name>) =>
  Object.fromEntries(names.map((name) => [name, uint(256)])) as Record<Name, fc.Arbitrary<bigint>>
const payer = fc.record({ address, ...figures("validationGas", "postOpGas", "feePerGas") })
const probes: fc.Arbitrary<GasLens.Probe> = fc.record({
  sender: address,
  ...{ initCode: hex(), validateCall: hex(), callData: hex() },
  ...figures("nonce", "requiredPrefund", "verificationGas", "callGas"),
  paymaster: fc.option(payer)
})
const upTo4 = { maxLength: 4 }
const times = <A>(count: number, one: A): ReadonlyArray<A> => Array.from({ length: count }, () => one)
const asked = (wallets: number, keys: number, count: number): GasLens.Asked => ({
  wallets: times(wallets, Address.zero),
  nonceKeys: times(keys, 0n),
  probes: times(count, fc.sample(probes, 1)[0] as GasLens.Probe)
})
const most = asked(256, 256, 256)
const decoded = (text: string, request = most) => GasLens.decode(text, request)
const measures = fc.record({
  stage: fc.nat(7),
  ...{ nonceAccepted: fc.boolean(), coldValidation: fc.boolean(), coldCall: fc.boolean(), data: hex() },
  ...figures("creationGas", "validationGas", "bookkeepingGas", "callGas", "paymasterGas", "postOpGas"),
  ...figures("callLimit", "paymasterLimit", "postOpLimit", "validationData", "paymasterData", "shortfall")
})
const states = fc.record({
  ...figures("deposit", "balance"),
  codeHash: fc.oneof(bytes32, fc.constantFrom(...codeless)),
  sequences: fc.array(uint(64), { maxLength: 4 })
})
const chains = fc.record({
  ...figures("chainId", "number", "timestamp", "baseFee", "gasLimit"),
  implementation: address,
  implementationHash: bytes32
})

describe("a request to the lens", () => {
  it("a lens request is the calldata that the contract's own ABI gives", () => {
    forAll(
      [fc.array(probes, upTo4), fc.array(address, upTo4), fc.array(uint(192), upTo4), address, fc.boolean()],
      (list, wallets, nonceKeys, beacon, declared) => {
        const data = GasLens.encodeCall({ entryPoint, probes: list, wallets, nonceKeys, beacon, declared })
        const creator = EntryPoint.senderCreator(entryPoint)
        const args = [list.map(toProbe), wallets, nonceKeys, beacon, creator, declared]
        expect(data).toEqual(Result.succeed(abi.encodeFunctionData("measure", args)))
      }
    )
  })

  it("a lens request defaults to keys 0 to 15 and no beacon", () => {
    const data = Result.getOrThrow(GasLens.encodeCall({ entryPoint, probes: [], wallets: [] }))
    const [, , keys, beacon, , declared] = abi.decodeFunctionData("measure", data)
    expect(declared).toBe(false)
    expect([...keys]).toEqual(Array.from({ length: 16 }, (_, key) => BigInt(key)))
    expect(beacon).toBe(Address.zero)
  })

  it("a lens request is refused, not thrown, when a number does not fit", () => {
    const [probe] = fc.sample(probes, 1)
    if (probe === undefined) throw new Error("no sample")
    const good = { ...probe, paymaster: null }
    const paymaster = { address: entryPoint, validationGas: 0n, postOpGas: 0n, feePerGas: 0n }
    const refusal = (request: Partial<GasLens.Request>) =>
      GasLens.encodeCall({ entryPoint, probes: [], wallets: [], ...request })
    const why = (text: string) =>
      Result.fail(new GasLens.GasLensError({ reason: `not a request that the lens can take: ${text}` }))
    const wrong = (part: object, text: string) =>
      expect(refusal({ probes: [good, { ...good, ...part }] })).toEqual(why(text))
    const beyond = 1n << 256n
    for (const part of [{ nonce: beyond }, { callGas: -1n }, { requiredPrefund: 1n << 300n }])
      wrong(part, "a figure is not a uint256")
    wrong({ verificationGas: beyond }, "a figure is not a uint256")
    for (const field of ["validationGas", "postOpGas", "feePerGas"])
      wrong({ paymaster: { ...paymaster, [field]: beyond } }, "a figure is not a uint256")
    for (const field of ["callData", "initCode", "validateCall"])
      wrong({ [field]: "0xzz" }, "bytes are not hex")
    expect(refusal({ nonceKeys: [0n, 1n << 192n] })).toEqual(why("a nonce key is not a uint192"))
    expect(Result.isSuccess(refusal({ probes: [good, { ...good, paymaster }] }))).toBe(true)
  })
})

describe("an answer of the lens", () => {
  const stages = ["ok", "creation", "validation", "prefund", "call", "starved", "paymaster", "postOp"]

  it("a lens reply is read as the contract's own ABI writes it", () => {
    forAll(
      [chains, fc.array(states, { maxLength: 3 }), fc.array(measures, { maxLength: 3 })],
      (chain, wallets, list) => {
        const { chainId, number, timestamp, baseFee, gasLimit, implementation, implementationHash } = chain
        const answer = abi.encodeFunctionResult("measure", [chain, wallets, list])
        expect(Result.getOrThrow(decoded(answer))).toEqual({
          chainId,
          block: { number, timestamp, baseFee, gasLimit },
          implementation:
            implementation === Address.zero
              ? null
              : { address: implementation, codeHash: implementationHash },
          wallets: wallets.map((wallet) => ({ ...wallet, deployed: !codeless.includes(wallet.codeHash) })),
          measures: list.map((measure) => ({ ...measure, stage: stages[measure.stage] }))
        })
      }
    )
  })

  it("a malformed lens reply is refused, not thrown", () => {
    const [chain] = fc.sample(chains, 1)
    const [measure] = fc.sample(measures, 1)
    const whole = abi.encodeFunctionResult("measure", [chain, [], [{ ...measure, data: "0x1234" }]])
    const refused = (text: string) => {
      const result = decoded(text)
      expect(result, text).toEqual(
        Result.fail(new GasLens.GasLensError({ reason: "not an answer of the gas lens" }))
      )
    }
    for (const text of ["", "0x", "0x00", "zz", "null", `0x${"ff".repeat(1000)}`, whole.slice(0, 700)])
      refused(text)
    refused(abi.encodeFunctionResult("measure", [chain, [], [{ ...measure, stage: 8 }]]))
    forAll([hex()], (text) => refused(text))
    forAll([fc.nat(whole.length - 3), fc.nat(15)], (at, digit) => {
      const changed = whole.slice(0, at + 2) + digit.toString(16) + whole.slice(at + 3)
      expect(["Failure", "Success"]).toContain(decoded(changed)._tag)
    })
  })
})

describe("an answer of a lying node", () => {
  const word = (value: number): string => value.toString(16).padStart(64, "0")
  const head = word(0).repeat(7)
  const measured = (text: string) => {
    let tag = ""
    const work = Work.of(() => {
      tag = decoded(text)._tag
    })
    return { _tag: tag, quick: work < 2_000 }
  }

  it("a lying reply whose rows share the same bytes is refused unread", () => {
    const rows = 256
    const bytes = 100_000
    const measures = `${word(11 * 32)}${word(9 * 32)}${word(rows)}${word(0)}${word(bytes)}`
    expect(measured(`0x${head}${measures}${word(32 * rows).repeat(rows)}${word(0).repeat(bytes)}`)).toEqual({
      _tag: "Failure",
      quick: true
    })
  })

  it("a lying reply with more values than requested is refused", () => {
    const [state] = fc.sample(states, 1)
    const [measure] = fc.sample(measures, 1)
    const [chain] = fc.sample(chains, 1)
    const answer = abi.encodeFunctionResult("measure", [
      chain,
      times(2, { ...state, sequences: [1n, 2n] }),
      times(2, measure)
    ])
    const tags = [asked(2, 2, 2), asked(1, 2, 2), asked(2, 1, 2), asked(2, 2, 1)].map(
      (request) => decoded(answer, request)._tag
    )
    expect(tags).toEqual(["Success", "Failure", "Failure", "Failure"])
  })

  it("a long honest reply takes linear work", () => {
    const row = `${word(1)}${word(2)}${"11".repeat(32)}${word(128)}${word(256)}${word(7).repeat(256)}`
    const offsets = Array.from({ length: 256 }, (_, n) => word(256 * 32 + n * (row.length / 2))).join("")
    const end = 9 * 32 + 32 + (offsets.length + row.length * 256) / 2
    const text = `0x${head}${word(9 * 32)}${word(end)}${word(256)}${offsets}${row.repeat(256)}${word(0)}`
    expect(measured(text)).toEqual({ _tag: "Success", quick: true })
  })
})

describe("the state override", () => {
  const code = Hex.unsafe("0x6001")

  it("has the lens over the EntryPoint, its code at the spare address, and the SenderCreator lead to the lens", () => {
    expect(LensOverrides.overrides({ entryPoint, entryPointCode: code })).toEqual({
      [entryPoint.toLowerCase()]: { code: gasLensRuntime },
      [GasLens.spare.toLowerCase()]: { code },
      [EntryPoint.senderCreator(entryPoint).toLowerCase()]: {
        code: `0x363d3d373d3d3d363d73${entryPoint.slice(2).toLowerCase()}5af43d82803e903d91602b57fd5bf3`
      }
    })
  })

  it("the state override merges balances and slots per address, of any case, and keeps the code", () => {
    const wallet = Address.unsafe(`0x${"ab".repeat(20)}`)
    const slot = `0x${"00".repeat(32)}`
    const merged = LensOverrides.overrides({
      entryPoint,
      entryPointCode: code,
      extra: {
        [entryPoint]: { balance: "0x5" },
        [wallet]: { balance: "0x1", stateDiff: { [slot]: slot } },
        [wallet.toLowerCase()]: { stateDiff: { "0x01": slot } }
      }
    })
    expect(merged[entryPoint.toLowerCase()]).toEqual({ code: gasLensRuntime, balance: "0x5" })
    expect(merged[wallet.toLowerCase()]).toEqual({
      balance: "0x1",
      stateDiff: { [slot]: slot, "0x01": slot }
    })
    expect(Object.keys(merged)).toHaveLength(4)
  })

  it("the state override is of the committed artifact, which needs no immutables", () => {
    expect(gasLensRuntime).toBe(lens.deployedBytecode)
    expect(lens).not.toHaveProperty("immutableReferences")
    expect(lens.deployedBytecode).toContain(GasLens.spare.slice(2).toLowerCase())
    expect(GasLens.spare.toLowerCase()).toBe(`0x${id("castellan.lens.entrypoint").slice(-40)}`)
  })
})

describe("validation data", () => {
  it("validation data are authorizer, end and beginning", () => {
    forAll([address, uint(48), uint(48)], (authorizer, validUntil, validAfter) => {
      const packed = (validAfter << 208n) | (validUntil << 160n) | BigInt(authorizer)
      expect(GasLens.parseValidationData(packed)).toEqual({ authorizer, validUntil, validAfter })
    })
  })
})
