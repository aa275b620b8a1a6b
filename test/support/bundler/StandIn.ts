import { createServer } from "node:http"
import type { AddressInfo } from "node:net"
import { text as bodyOf } from "node:stream/consumers"
import {
  AbiCoder,
  Contract,
  concat,
  type HDNodeWallet,
  type JsonRpcProvider,
  NonceManager,
  zeroPadValue
} from "ethers"
import { entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { mined } from "../suite/Receipt.js"

/** A UserOperation of v0.7 in the form for bundlers. */
export interface JsonOp {
  readonly sender: string
  readonly nonce: string
  readonly factory?: string
  readonly factoryData?: string
  readonly callData: string
  readonly callGasLimit: string
  readonly verificationGasLimit: string
  readonly preVerificationGas: string
  readonly maxFeePerGas: string
  readonly maxPriorityFeePerGas: string
  readonly paymaster?: string
  readonly paymasterVerificationGasLimit?: string
  readonly paymasterPostOpGasLimit?: string
  readonly paymasterData?: string
  readonly signature: string
}

/** The bundler's reaction to an op. */
export type Conduct =
  /** Submits the op immediately. */
  | { readonly does: "submit" }
  /** Accepts the op and submits it on command. */
  | { readonly does: "keep" }
  /** Reports that it has taken the op, and forgets it. */
  | { readonly does: "lose" }
  | { readonly does: "refuse"; readonly code: number; readonly message: string }
  /** Refuses the op, but submits it on command. */
  | { readonly does: "refuseAndKeep"; readonly code: number; readonly message: string }
  /** Hangs up without an answer, after or before it has submitted the op. */
  | { readonly does: "submitAndCut" }
  | { readonly does: "cut" }

/** A scripted EntryPoint v0.7 bundler with its own EOA. */
export interface StandIn {
  readonly url: string
  /** All received ops, in order. */
  readonly sent: ReadonlyArray<{ readonly op: JsonOp; readonly hash: string }>
  /** The methods called, in order. */
  readonly asked: ReadonlyArray<string>
  /** Sets the conduct from now on, by op; `turn` counts received ops from 0. */
  readonly behave: (conduct: (op: JsonOp, turn: number) => Conduct) => void
  /** Submits its kept ops, in the order of arrival. */
  readonly release: () => Promise<void>
  /** Minimum of preVerificationGas. */
  readonly demand: (preVerificationGas: bigint) => void
  /** The chain and the EOA of its submissions. */
  readonly attach: (provider: JsonRpcProvider, eoa: HDNodeWallet) => void
  readonly stop: () => Promise<void>
}

const packedOp =
  "tuple(address sender,uint256 nonce,bytes initCode,bytes callData,bytes32 accountGasLimits," +
  "uint256 preVerificationGas,bytes32 gasFees,bytes paymasterAndData,bytes signature)"
const abi = [
  `function handleOps(${packedOp}[] ops, address beneficiary)`,
  `function getUserOpHash(${packedOp} op) view returns (bytes32)`,
  "event UserOperationEvent(bytes32 indexed userOpHash, address indexed sender, address indexed paymaster, uint256 nonce, bool success, uint256 actualGasCost, uint256 actualGasUsed)",
  "error FailedOp(uint256 opIndex, string reason)",
  "error FailedOpWithRevert(uint256 opIndex, string reason, bytes inner)"
]

const half = (quantity: string) => zeroPadValue(`0x${BigInt(quantity).toString(16).padStart(32, "0")}`, 16)

const pack = (op: JsonOp) => ({
  ...op,
  initCode: op.factory === undefined ? "0x" : concat([op.factory, op.factoryData ?? "0x"]),
  accountGasLimits: concat([half(op.verificationGasLimit), half(op.callGasLimit)]),
  gasFees: concat([half(op.maxPriorityFeePerGas), half(op.maxFeePerGas)]),
  paymasterAndData:
    op.paymaster === undefined
      ? "0x"
      : concat([
          op.paymaster,
          half(op.paymasterVerificationGasLimit ?? "0x0"),
          half(op.paymasterPostOpGasLimit ?? "0x0"),
          op.paymasterData ?? "0x"
        ])
})

class Refused extends Error {
  constructor(
    readonly code: number,
    message: string
  ) {
    super(message)
  }
}

/** The codes of ERC-7769 for the EntryPoint's refusals. */
const codeOf = (reason: string): number => {
  if (/^AA3/.test(reason)) return -32_501
  if (/^AA(?:22|32)/.test(reason)) return -32_503
  return /^AA(?:24|34)/.test(reason) ? -32_507 : -32_500
}

export const startStandIn = async (): Promise<StandIn> => {
  const entryPointAddress = entryPoints["v0.7"]
  const sent: Array<{ op: JsonOp; hash: string }> = []
  const asked: Array<string> = []
  /** Its ops, by hash. */
  const pool = new Map<string, JsonOp>()
  let conductOf: (op: JsonOp, turn: number) => Conduct = () => ({ does: "submit" })
  let least = 0n
  let chain: { readonly provider: JsonRpcProvider; readonly eoa: NonceManager; readonly entryPoint: Contract }
  /** One transaction after the other. */
  let turnOf: Promise<unknown> = Promise.resolve()

  const submit = (op: JsonOp): Promise<void> => {
    const turn = turnOf.then(async () => {
      const { entryPoint, eoa } = chain
      const beneficiary = await eoa.getAddress()
      const handleOps = entryPoint.getFunction("handleOps")
      try {
        await handleOps.staticCall([pack(op)], beneficiary)
      } catch (error) {
        const revert =
          error instanceof Error && "revert" in error
            ? (error as { revert?: { args: ReadonlyArray<unknown> } }).revert
            : undefined
        const reason = String(revert?.args[1] ?? "reverted")
        throw new Refused(codeOf(reason), reason)
      }
      const transaction = await handleOps([pack(op)], beneficiary, { gasLimit: 5_000_000 })
      await mined(transaction)
    })
    turnOf = turn.catch(() => undefined)
    return turn
  }

  const hashOf = async (op: JsonOp): Promise<string> =>
    chain.entryPoint.getFunction("getUserOpHash")(pack(op))

  const answer = async (method: string, params: ReadonlyArray<unknown>): Promise<unknown> => {
    switch (method) {
      case "eth_chainId":
        return `0x${(await chain.provider.getNetwork()).chainId.toString(16)}`
      case "eth_supportedEntryPoints":
        return [entryPointAddress]
      case "eth_estimateUserOperationGas":
        return {
          preVerificationGas: `0x${least.toString(16)}`,
          verificationGasLimit: "0x1",
          callGasLimit: "0x1"
        }
      case "eth_getUserOperationByHash": {
        const hash = String(params[0])
        const filter = chain.entryPoint.filters.UserOperationEvent?.(hash)
        const [log] = filter === undefined ? [] : await chain.entryPoint.queryFilter(filter, 0)
        if (log !== undefined) return { transactionHash: log.transactionHash, blockHash: log.blockHash }
        return pool.has(hash) ? { transactionHash: null, blockHash: null } : null
      }
      case "eth_sendUserOperation": {
        const [given, entryPoint] = params as [JsonOp, string]
        if (entryPoint !== entryPointAddress) throw new Refused(-32_602, "another EntryPoint")
        const hash = await hashOf(given)
        const turn = sent.push({ op: given, hash }) - 1
        const conduct = conductOf(given, turn)
        if (conduct.does === "refuseAndKeep") pool.set(hash, given)
        if (conduct.does === "refuse" || conduct.does === "refuseAndKeep")
          throw new Refused(conduct.code, conduct.message)
        if (conduct.does === "cut") return undefined
        if (conduct.does === "lose") return hash
        if (pool.has(hash)) throw new Refused(-32_602, "User operation already present in mempool")
        if (BigInt(given.preVerificationGas) < least)
          throw new Refused(-32_602, `preVerificationGas must be at least ${least}`)
        pool.set(hash, given)
        if (conduct.does === "keep") return hash
        try {
          await submit(given)
        } finally {
          pool.delete(hash)
        }
        return conduct.does === "submitAndCut" ? undefined : hash
      }
      default:
        throw new Refused(-32_601, `the method ${method} does not exist`)
    }
  }

  const server = createServer(async (request, response) => {
    const { id, method, params } = JSON.parse(await bodyOf(request))
    asked.push(method)
    try {
      const result = await answer(method, params)
      if (result === undefined) {
        request.socket.destroy()
        return
      }
      response.setHeader("content-type", "application/json")
      response.end(JSON.stringify({ jsonrpc: "2.0", id, result }))
    } catch (error) {
      const code = error instanceof Refused ? error.code : -32_603
      const message = error instanceof Error ? error.message : "failed"
      response.end(JSON.stringify({ jsonrpc: "2.0", id, error: { code, message } }))
    }
  })
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}/v2/a-key-of-the-operator`,
    sent,
    asked,
    behave: (conduct) => {
      conductOf = conduct
    },
    release: async () => {
      for (const [hash, op] of [...pool]) {
        await submit(op)
        pool.delete(hash)
      }
    },
    demand: (preVerificationGas) => {
      least = preVerificationGas
    },
    attach: (provider, eoa) => {
      const manager = new NonceManager(eoa.connect(provider))
      chain = { provider, eoa: manager, entryPoint: new Contract(entryPointAddress, abi, manager) }
    },
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}

/** The conditions in an op's signature, decoded by another ABI library than the service's. */
export const conditionsOf = ({ signature }: JsonOp) => {
  const [validUntil, validAfter, bundler] = AbiCoder.defaultAbiCoder().decode(
    ["uint48", "uint48", "address", "bytes"],
    signature
  )
  return { validUntil: Number(validUntil), validAfter: Number(validAfter), bundler: String(bundler) }
}
