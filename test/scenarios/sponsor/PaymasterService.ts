import { createServer } from "node:http"
import { text as bodyOf } from "node:stream/consumers"
import { id } from "ethers"
import * as Port from "../../support/process/Port.js"

/** A UserOperation as defined by ERC-7677, with the members of its EntryPoint's version. */
export type JsonOp = Readonly<Record<string, string>>

export type Method = "pm_getPaymasterStubData" | "pm_getPaymasterData"

/** The result of a method, an error object, or an HTTP answer that is not JSON-RPC. */
export type Answer =
  | { readonly result: unknown }
  | { readonly error: { readonly code: number; readonly message: string } }
  | { readonly status: number; readonly body: string }

/** A paymaster's service that insists on the protocol. */
export interface Service {
  readonly url: string
  /** Its calls, in order. */
  readonly asked: ReadonlyArray<{ readonly method: Method; readonly op: JsonOp; readonly context: object }>
  /** Sets the replies from now on; left out or null: those of an honest service. */
  readonly behave: (answer?: (method: Method, op: JsonOp) => Answer | null) => void
  readonly stop: () => Promise<void>
}

/**
 * The fields that an honest service's data commit to: every field of the op but the signature and the paymaster's own.
 */
export const commitment = (op: JsonOp): string =>
  id(
    JSON.stringify(
      [
        "sender",
        "nonce",
        "callData",
        "callGasLimit",
        "verificationGasLimit",
        "preVerificationGas",
        "maxFeePerGas",
        "maxPriorityFeePerGas"
      ].map((name) => String(op[name]).toLowerCase())
    )
  )

const quantity = /^0x(?:0|[1-9a-f][0-9a-f]*)$/
const bytes = /^0x(?:[0-9a-fA-F]{2})*$/
const address = /^0x[0-9a-fA-F]{40}$/

const common: Readonly<Record<string, RegExp>> = {
  sender: address,
  nonce: quantity,
  callData: bytes,
  callGasLimit: quantity,
  verificationGasLimit: quantity,
  preVerificationGas: quantity,
  maxFeePerGas: quantity,
  maxPriorityFeePerGas: quantity
}
/** Optional members of an op of that version. */
const more = (v06: boolean): Readonly<Record<string, RegExp>> =>
  v06
    ? { initCode: bytes, paymasterAndData: bytes, signature: bytes }
    : {
        factory: address,
        factoryData: bytes,
        paymaster: address,
        paymasterData: bytes,
        paymasterVerificationGasLimit: quantity,
        paymasterPostOpGasLimit: quantity,
        signature: bytes
      }

const problemOf = (op: JsonOp, v06: boolean): string | null => {
  for (const name of Object.keys(common)) if (op[name] === undefined) return `${name} is missing`
  if (v06 && op.initCode === undefined) return "initCode is missing"
  const shapes = { ...common, ...more(v06) }
  for (const [name, value] of Object.entries(op)) {
    const shape = shapes[name]
    if (shape === undefined) return `${name} is not a member of this version`
    if (!shape.test(value)) return `${name} is ${value}`
  }
  return (op.factory === undefined) === (op.factoryData === undefined) ? null : "half a factory"
}

/** Of this paymaster, for EntryPoint v0.6 at that address and any other version elsewhere. */
export const startService = async (options: {
  readonly paymaster: string
  readonly v06: string
  readonly chainId: number
}): Promise<Service> => {
  const asked: Array<{ method: Method; op: JsonOp; context: object }> = []
  let answerOf: (method: Method, op: JsonOp) => Answer | null = () => null

  const honest = (method: Method, op: JsonOp, v06: boolean): Answer => {
    const data = method === "pm_getPaymasterStubData" ? `0x${"ab".repeat(32)}` : commitment(op)
    if (v06) return { result: { paymasterAndData: `${options.paymaster}${data.slice(2)}` } }
    const limits = { paymasterVerificationGasLimit: "0x10000", paymasterPostOpGasLimit: "0x10000" }
    return {
      result: {
        paymaster: options.paymaster,
        paymasterData: data,
        ...(method === "pm_getPaymasterStubData" && { ...limits, sponsor: { name: "a stand-in" } })
      }
    }
  }

  const handle = (call: {
    readonly jsonrpc?: unknown
    readonly id?: unknown
    readonly method?: unknown
    readonly params?: unknown
  }): Answer => {
    const invalid = (message: string): Answer => ({ error: { code: -32_602, message } })
    const { method, params } = call
    if (call.jsonrpc !== "2.0" || call.id === undefined) return invalid("no JSON-RPC 2.0")
    if (method !== "pm_getPaymasterStubData" && method !== "pm_getPaymasterData")
      return { error: { code: -32_601, message: "method not found" } }
    if (!Array.isArray(params) || params.length !== 4) return invalid("expected four parameters")
    const [op, entryPoint, chainId, context] = params as [JsonOp, string, string, unknown]
    if (BigInt(chainId) !== BigInt(options.chainId) || !quantity.test(chainId)) return invalid("chain id")
    if (typeof context !== "object" || context === null) return invalid("context")
    const v06 = entryPoint.toLowerCase() === options.v06.toLowerCase()
    const problem = problemOf(op, v06)
    if (problem !== null) return invalid(problem)
    asked.push({ method, op, context })
    return answerOf(method, op) ?? honest(method, op, v06)
  }

  const server = createServer(async (request, response) => {
    const call = JSON.parse(await bodyOf(request))
    const answer = handle(call)
    const [status, body] =
      "status" in answer
        ? [answer.status, answer.body]
        : [200, JSON.stringify({ jsonrpc: "2.0", id: call.id, ...answer })]
    response.writeHead(status, { "content-type": "application/json" }).end(body)
  })
  const port = await Port.listen(server)
  return {
    url: `http://127.0.0.1:${port}/v1/secret-key`,
    asked,
    behave: (answer = () => null) => {
      answerOf = answer
    },
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections()
        server.close(() => resolve())
      })
  }
}
