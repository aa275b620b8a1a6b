import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import {
  AbiCoder,
  Interface,
  type InterfaceAbi,
  keccak256,
  recoverAddress,
  Signature,
  SigningKey,
  TypedDataEncoder
} from "ethers"
import type * as NativeCrypto from "../../src/adapters/native/Crypto.js"
import type * as Event from "../../src/domain/abi/Event.js"
import type * as FunctionSignature from "../../src/domain/abi/FunctionSignature.js"
import type * as Log from "../../src/domain/abi/Log.js"
import type * as Parameters from "../../src/domain/abi/Parameters.js"
import type * as Secp256k1 from "../../src/domain/crypto/Secp256k1.js"
import * as EntryPoint from "../../src/domain/erc4337/EntryPoint.js"
import type * as UserOperation from "../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../src/domain/primitives/Address.js"
import * as Hex from "../../src/domain/primitives/Hex.js"
import type * as Keccak from "../../src/domain/primitives/Keccak.js"
import * as Built from "../harness/Built.js"
import { type Claim, ensure, type Row } from "../harness/Claim.js"
import type { Context } from "../harness/Context.js"
import type { Contender, Functions } from "../harness/Peers.js"
import * as Peers from "../harness/Peers.js"
import * as Rates from "../harness/Rates.js"
import { figure, ratio } from "../harness/Stats.js"

/** Domain functions in one process, against viem, ox and ethers. */

const transfer = "function transfer(address to, uint256 value) returns (bool)"
const transferred = "event Transfer(address indexed from, address indexed to, uint256 value)"

interface Task {
  readonly what: string
  /** Task of viem and ox; null: they have none. */
  readonly peer: string
  readonly inputs: unknown
  /** Input of each call, in turn. */
  readonly each?: ReadonlyArray<unknown>
  readonly castellan: Contender
  readonly ethers: Contender
  readonly demanded: boolean
  /** Converts results to a common form. */
  readonly same?: (result: unknown) => unknown
}

const address = (place: number): string => Address.unsafe(`0x${place.toString(16).padStart(40, "a7")}`)

const privateKey = `0x${"a1".repeat(32)}`
const digest = `0x${"5a".repeat(32)}`

const op = {
  sender: address(1),
  nonce: (7n << 64n) + 3n,
  callData: `0x${"b6".repeat(164)}`,
  callGasLimit: 83_000n,
  verificationGasLimit: 120_000n,
  preVerificationGas: 51_000n,
  maxFeePerGas: 30n * 10n ** 9n,
  maxPriorityFeePerGas: 10n ** 9n,
  signature: `0x${"cd".repeat(65)}`
}

/** Uses ethers' ABI coder, as a backend without an ERC-4337 library would. */
const ethersOpHash = (version: EntryPoint.Version, entryPoint: string): Contender => {
  const coder = AbiCoder.defaultAbiCoder()
  const empty = keccak256("0x")
  const pair = (high: bigint, low: bigint) => `0x${((high << 128n) | low).toString(16).padStart(64, "0")}`
  if (version === "v0.8") {
    const domain = { name: "ERC4337", version: "1", chainId: 31337n, verifyingContract: entryPoint }
    const fields = ["address sender", "uint256 nonce", "bytes initCode", "bytes callData"].concat([
      "bytes32 accountGasLimits",
      "uint256 preVerificationGas",
      "bytes32 gasFees",
      "bytes paymasterAndData"
    ])
    const types = {
      PackedUserOperation: fields.map((field) => {
        const [type = "", name = ""] = field.split(" ")
        return { type, name }
      })
    }
    return () =>
      TypedDataEncoder.hash(domain, types, {
        sender: op.sender,
        nonce: op.nonce,
        initCode: "0x",
        callData: op.callData,
        accountGasLimits: pair(op.verificationGasLimit, op.callGasLimit),
        preVerificationGas: op.preVerificationGas,
        gasFees: pair(op.maxPriorityFeePerGas, op.maxFeePerGas),
        paymasterAndData: "0x"
      })
  }
  const head = ["address", "uint256", "bytes32", "bytes32"]
  const types =
    version === "v0.6"
      ? [...head, "uint256", "uint256", "uint256", "uint256", "uint256", "bytes32"]
      : [...head, "bytes32", "uint256", "bytes32", "bytes32"]
  return () => {
    const gas =
      version === "v0.6"
        ? [
            op.callGasLimit,
            op.verificationGasLimit,
            op.preVerificationGas,
            op.maxFeePerGas,
            op.maxPriorityFeePerGas
          ]
        : [
            pair(op.verificationGasLimit, op.callGasLimit),
            op.preVerificationGas,
            pair(op.maxPriorityFeePerGas, op.maxFeePerGas)
          ]
    const inner = keccak256(
      coder.encode(types, [op.sender, op.nonce, empty, keccak256(op.callData), ...gas, empty])
    )
    return keccak256(coder.encode(["bytes32", "address", "uint256"], [inner, entryPoint, 31337n]))
  }
}

const opHashes = async (context: Context): Promise<ReadonlyArray<Task>> => {
  const { hash } = await Built.load<typeof UserOperation>(context, "src/domain/erc4337/UserOperation.js")
  const ours: UserOperation.UserOperation = {
    ...op,
    sender: Address.unsafe(op.sender),
    initCode: Hex.empty,
    callData: Hex.unsafe(op.callData),
    paymasterAndData: Hex.empty,
    signature: Hex.unsafe(op.signature)
  }
  return EntryPoint.versions.map((version) => {
    const entryPoint = EntryPoint.canonical[version]
    const bare = version === "v0.6" ? { initCode: "0x", paymasterAndData: "0x" } : {}
    return {
      what: `userOpHash of ${version}`,
      peer: "opHash",
      inputs: { chainId: 31337, entryPoint, version: version.slice(1), op: { ...op, ...bare } },
      castellan: () => hash(version, entryPoint, 31337n, ours),
      ethers: ethersOpHash(version, entryPoint),
      demanded: true
    }
  })
}

const abiTasks = async (context: Context): Promise<ReadonlyArray<Task>> => {
  const { encodeCall } = await Built.load<typeof Parameters>(context, "src/domain/abi/Parameters.js")
  const { parse } = await Built.load<typeof FunctionSignature>(context, "src/domain/abi/FunctionSignature.js")
  const { parse: parseEvent } = await Built.load<typeof Event>(context, "src/domain/abi/Event.js")
  const { index, decoder: layered } = await Built.load<typeof Log>(context, "src/domain/abi/Log.js")
  const params = [address(2), "123456789"]
  const signature = Result.getOrThrow(parse("transfer(address,uint256)"))
  const abi: InterfaceAbi = [transfer, transferred]
  const known = new Interface(abi)
  const decode = layered([index([Result.getOrThrow(parseEvent(transferred))])])
  const logs = Array.from({ length: 10_000 }, (_, n) => ({
    address: Address.unsafe(address(9)),
    topics: [
      Hex.unsafe32("0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"),
      ...[n, n + 1].map((place) =>
        Hex.unsafe32(`0x${address(place).slice(2).toLowerCase().padStart(64, "0")}`)
      )
    ],
    data: Hex.unsafe(`0x${(n * 1_000).toString(16).padStart(64, "0")}`),
    logIndex: n
  }))
  return [
    {
      what: "calldata of `transfer` from strings, the ABI parsed before",
      peer: "encode",
      inputs: { params },
      castellan: () => Result.getOrThrow(encodeCall(signature, params)),
      ethers: () => known.encodeFunctionData("transfer", params),
      demanded: true
    },
    {
      what: "calldata of `transfer` from strings, the signature parsed as well",
      peer: "parseAndEncode",
      inputs: { params },
      castellan: () =>
        Result.getOrThrow(encodeCall(Result.getOrThrow(parse("transfer(address,uint256)")), params)),
      ethers: () => new Interface([transfer]).encodeFunctionData("transfer", params),
      demanded: false
    },
    {
      what: "Transfer logs decoded, of 10,000",
      peer: "decode",
      inputs: null,
      each: logs,
      castellan: (log) => {
        const { args } = decode(log as (typeof logs)[number])
        return args
      },
      ethers: (log) => {
        const { args } = known.parseLog(log as (typeof logs)[number]) ?? { args: [] }
        return `${args[0]} ${args[1]} ${args[2]}`
      },
      demanded: true,
      same: (result) =>
        typeof result === "object" && result !== null ? Object.values(result).join(" ") : result
    }
  ]
}

const curveTasks = async (context: Context): Promise<ReadonlyArray<Task>> => {
  const curve = await Built.load<typeof Secp256k1>(context, "src/domain/crypto/Secp256k1.js")
  const { hash } = await Built.load<typeof Keccak>(context, "src/domain/primitives/Keccak.js")
  const key = Result.getOrThrow(curve.privateKey(Hex.unsafe32(privateKey)))
  const ours = key.sign(Hex.unsafe32(digest))
  const signature: string = curve.serialize(ours)
  const theirs = new SigningKey(privateKey)
  const signer: string = curve.addressOf(key.publicKey)
  const bytes = `0x${"07".repeat(85)}`
  const both = [27, 28].map((v) => `${signature.slice(0, 130)}${v.toString(16)}`)
  return [
    {
      what: "keccak256 of 85 bytes of hex",
      peer: "keccak",
      inputs: { bytes },
      castellan: () => hash(Hex.unsafe(bytes)),
      ethers: () => keccak256(bytes),
      demanded: false
    },
    {
      what: "a digest signed",
      peer: "sign",
      inputs: { digest, privateKey },
      castellan: () => curve.serialize(key.sign(Hex.unsafe32(digest))),
      ethers: () => theirs.sign(digest).serialized,
      demanded: false
    },
    {
      what: "a signature proved against a known key",
      peer: "prove",
      inputs: { address: signer, digest, publicKey: key.publicKey, signature },
      castellan: () => curve.prove(key.publicKey, Hex.unsafe32(digest), ours) === signature,
      ethers: () => both.some((each) => SigningKey.recoverPublicKey(digest, each) === theirs.publicKey),
      demanded: true
    },
    {
      what: "the signer's address recovered",
      peer: "recover",
      inputs: { digest, signature },
      castellan: () => curve.recoverAddress(Hex.unsafe32(digest), ours),
      ethers: () => recoverAddress(digest, Signature.from(signature)),
      demanded: true
    }
  ]
}

const measure = async (
  context: Context,
  task: Task,
  peers: Functions | null
): Promise<readonly [Row, unknown]> => {
  const contenders: Record<string, Contender> = { castellan: task.castellan, ethers: task.ethers }
  for (const name of ["viem", "ox", "wasm"] as const) {
    const made = peers?.[name][task.peer]
    if (made !== undefined) contenders[name] = made(task.inputs)
  }
  const each = task.each ?? [undefined]
  const same = task.same ?? ((result: unknown) => result)
  for (const input of each.slice(0, 100)) {
    const expected = same(task.castellan(input))
    for (const [name, call] of Object.entries(contenders)) {
      const found = same(await call(input))
      ensure(found === expected, `${task.what}: ${name} says ${found}, castellan ${expected}`)
    }
  }
  const calls = Object.fromEntries(
    Object.entries(contenders).map(([name, call]) => {
      let turn = 0
      return [name, () => call(each[turn++ % each.length])]
    })
  )
  const options = { rounds: context.size(3, 1), seconds: context.size(0.2, 0.01) }
  const rates = await Rates.perCpuSecond(calls, options)
  const others = Object.entries(rates).filter(([name]) => name !== "castellan")
  const best = Math.max(...others.filter(([name]) => name !== "wasm").map(([, rate]) => rate))
  const share = (rates.castellan ?? 0) / best
  const row = {
    what: task.what,
    castellan: `${figure(rates.castellan ?? 0)}/s`,
    against: others.map(([name, rate]) => `${name} ${figure(rate)}/s`).join(", "),
    ratio: ratio(share),
    demand: task.demanded ? "at least 2 x the best" : "-",
    met: task.demanded && peers !== null ? share >= 2 : null
  }
  return [row, rates]
}

export const claim: Claim = {
  name: "functions",
  title: "Functions of the domain",
  boundSeconds: 400,
  run: async (context) => {
    const peers = context.peers ? await Peers.load<Functions>("functions.mjs") : null
    const native = await Built.load<typeof NativeCrypto>(context, "src/adapters/native/Crypto.js")
    await Effect.runPromise(native.install)
    const tasks = [...(await opHashes(context)), ...(await abiTasks(context)), ...(await curveTasks(context))]
    const measured: Array<readonly [Row, unknown]> = []
    for (const task of tasks) measured.push(await measure(context, task, peers))
    return {
      rows: measured.map(([row]) => row),
      notes: [
        "Calls per second of CPU of one process, medians of alternating rounds. The ratio is to the fastest of viem, ox and ethers; wasm is hash-wasm or tiny-secp256k1, for comparison. All agree in their results first. castellan's functions come from the built package; they return logs as JSON strings with the event's definition, which the others do not make."
      ],
      raw: measured.map(([{ what }, rates]) => ({ what, rates }))
    }
  }
}
