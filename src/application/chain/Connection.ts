import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import * as EntryPoint from "../../domain/erc4337/EntryPoint.js"
import type { Address } from "../../domain/primitives/Address.js"
import { type Failure, invalid, invalidAt, unavailable, unprocessable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import { type ChainClient, ChainRpc, type ChainRpcError, isAnswer } from "../ports/chain/ChainRpc.js"
import type { LaneAccess } from "../ports/journal/Transactions.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import { Networks } from "../ports/Networks.js"
import type { Caller } from "../request/Caller.js"

/**
 * Connects a request to the caller's node or the operator's, and turns a node's failure into the request's.
 *
 * Gotchas: a message to a caller never names the operator's node, nor shows which names resolve in the operator's
 * network.
 */

/** A chain that the service may work on, and this request's node. */
export interface Connection {
  readonly chain: ChainClient
  readonly profile: NetworkProfile
  /** The node's author, who is responsible for its failures. */
  readonly trust: "caller" | "operator"
  readonly rpc: Redacted.Redacted<string>
}

/** The access that a key's lane needs to continue through this node after its requests have left. */
export const access = (caller: Caller, { rpc, trust }: Connection, key: LaneAccess["key"]): LaneAccess => ({
  accountId: caller.principal.accountId,
  key,
  rpc,
  trust
})

/** The adapter's description of a failure, without the node's name, which the caller of this function adds. */
const whyOf = ({ message, origin }: ChainRpcError): string =>
  message.startsWith(`${origin}: `) ? message.slice(origin.length + 2) : message

const noConnection = "network connection failed: RPC endpoint unreachable"

const forbidden =
  "forbidden: the service connects only to public addresses and to addresses that its operator allows"

/** Whether an origin is a literal address, which anyone can see is not public. */
const isSpelledOut = (origin: string): boolean =>
  /^https?:\/\/(?:\[[0-9a-f:.]+\]|[0-9.]+|(?:[^/:]+\.)?localhost)\.?(?::\d+)?$/.test(origin)

/** Retry delay for the caller, where the node names none, seconds. */
const waitSeconds = 5

/** The node cannot be queried now, but may be soon: the same request is worth a retry. */
const notNow = (path: string, { retryAfterMillis = 0 }: ChainRpcError, message: string): Failure =>
  unavailable(
    "node_unavailable",
    [{ path, message }],
    Math.max(waitSeconds, Math.ceil(retryAfterMillis / 1_000))
  )

/** The node's stated reason for not answering. */
const excuseOf = (name: string, error: ChainRpcError): string =>
  error.reason === "rateLimited"
    ? `${name} limits the rate of requests`
    : `${name} answered${error.rpcCode === undefined ? " with " : ": "}${whyOf(error)}`

/** Maps a node's failure to the request's failure, as long as nothing was sent. */
export const refusal = (
  trust: "caller" | "operator",
  path = "settings.rpc"
): ((error: ChainRpcError) => Failure) => {
  // Callers never learn the operator's node.
  const operators = "the operator's node"
  const rejected = (error: ChainRpcError) =>
    unprocessable("node_refused", [
      {
        path: trust === "caller" ? path : "",
        message: Reasons.text("nodeAnswered", {
          origin: trust === "caller" ? error.origin : operators,
          message: whyOf(error)
        })
      }
    ])
  if (trust === "operator")
    return (error) => {
      if (isAnswer(error)) return rejected(error)
      const speaks = error.reason === "rateLimited" || error.reason === "unavailable"
      return notNow("", error, speaks ? excuseOf(operators, error) : `${operators} did not answer`)
    }
  return (error) => {
    switch (error.reason) {
      case "rejected":
      case "unsupported":
        return rejected(error)
      case "unavailable":
      case "rateLimited":
        return notNow(path, error, excuseOf(error.origin, error))
      case "invalidUrl":
        return invalidAt(
          path,
          "expected an http or https URL of at most 2,048 characters, without user name and password",
          "invalid_rpc"
        )
      case "forbidden":
        // A refused name gets the wording of an unreachable node, so that callers cannot learn which names resolve
        // inside the operator's network.
        return invalidAt(path, isSpelledOut(error.origin) ? forbidden : noConnection, "invalid_rpc")
      case "notAnRpc":
        return invalidAt(
          path,
          `${error.origin} does not answer as a JSON-RPC node: ${whyOf(error)}`,
          "invalid_rpc"
        )
      case "unreachable":
        return invalidAt(
          path,
          whyOf(error).startsWith("HTTP status ")
            ? `${error.origin} answered with ${whyOf(error)}`
            : noConnection,
          "invalid_rpc"
        )
    }
  }
}

/** A request's choice of node: a URL, or the operator's node of a chain. */
export interface NodeChoice {
  readonly rpc?: string
  readonly chainId?: number
}

/** The field that accompanies `rpc`, in the settings or at the top of a request. */
const chainIdBeside = (path: string) => path.replace(/rpc$/, "chainId")

const supported = Effect.fnUntraced(function* (
  caller: Caller,
  chainId: bigint,
  path: string,
  message: string
) {
  const networks = yield* Networks
  const profile = yield* networks.profile(caller.principal.accountId, chainId)
  if (profile === null)
    return yield* invalid("unsupported_chain", [{ path, message }], `unsupported chain id ${chainId}`)
  caller.onChain?.(chainId)
  return profile
})

const served = (connecting: Effect.Effect<ChainClient, ChainRpcError>) =>
  Effect.flatMap(connecting, (chain) => Effect.map(chain.chainId, (chainId) => ({ chain, chainId })))

const openCallers = Effect.fnUntraced(function* (
  caller: Caller,
  rpc: string,
  expected: number | undefined,
  path: string
) {
  const rpcs = yield* ChainRpc
  const { chain, chainId } = yield* served(rpcs.connect(rpc, { account: caller.principal.accountId })).pipe(
    // A node that refuses even its chain id (it rejects the key in the URL, say) does not work for this caller.
    Effect.mapError((error) =>
      isAnswer(error)
        ? invalidAt(path, `${error.origin} answered: ${error.message}`, "invalid_rpc")
        : refusal("caller", path)(error)
    )
  )
  if (expected !== undefined && BigInt(expected) !== chainId)
    return yield* invalidAt(chainIdBeside(path), `the node serves chain ${chainId}`, "invalid_rpc")
  const profile = yield* supported(caller, chainId, path, `the node serves chain ${chainId}`)
  return { chain, profile, trust: "caller" as const, rpc: Redacted.make(rpc) }
})

export const openOperators = Effect.fnUntraced(function* (profile: NetworkProfile, path: string) {
  const rpcs = yield* ChainRpc
  if (profile.rpc === null) return yield* invalidAt(path, `chain ${profile.chainId}`, "operator_rpc_missing")
  const node = rpcs.connect(Redacted.value(profile.rpc), "operator")
  const { chain, chainId } = yield* Effect.mapError(served(node), refusal("operator"))
  if (chainId !== profile.chainId)
    return yield* unprocessable("node_refused", [
      { path: "", message: Reasons.text("operatorNodeOfOtherChain") }
    ])
  return { chain, profile, trust: "operator" as const, rpc: profile.rpc }
})

/** The only chain with an operator's node for this account. */
const onlyChain = Effect.fnUntraced(function* (caller: Caller, path: string) {
  const networks = yield* Networks
  const [only, ...others] = yield* Effect.filter(yield* networks.chainIds, (chainId) =>
    Effect.map(
      networks.profile(caller.principal.accountId, chainId),
      (profile) => profile !== null && profile.rpc !== null
    )
  )
  if (only !== undefined && others.length === 0) return only
  const message =
    only === undefined
      ? `${path} is required`
      : `${path} or ${chainIdBeside(path)} is required: the operator has nodes of several chains`
  return yield* invalidAt(path, message)
})

/**
 * Connects a request to its node, which must be reachable and on a supported chain: the caller's where `rpc` names one,
 * otherwise the operator's of `chainId`, or of the only chain with an operator's node.
 */
export const open = Effect.fnUntraced(function* (
  caller: Caller,
  { chainId, rpc }: NodeChoice,
  path = "settings.rpc"
) {
  if (rpc !== undefined) return yield* openCallers(caller, rpc, chainId, path)
  const named = chainId === undefined ? caller.chainId : BigInt(chainId)
  const chosen = named ?? (yield* onlyChain(caller, path))
  const at = chainId === undefined ? path : chainIdBeside(path)
  return yield* openOperators(yield* supported(caller, chosen, at, "the operator does not serve it"), at)
})

/**
 * Connects to the operator's node of the request's chain. All data that a system key signs is read from it; a caller's
 * node only supplies its chain id. Not `required`: the caller's node serves a chain for which the operator has none.
 */
export const openOperator = (caller: Caller, node: NodeChoice, required = true) =>
  Effect.flatMap(open(caller, node), (connection) =>
    connection.trust === "operator" || (!required && connection.profile.rpc === null)
      ? Effect.succeed(connection)
      : openOperators(connection.profile, "settings.rpc")
  )

/** The version of a requested EntryPoint that the profile accepts. */
export const entryPointVersion = (profile: NetworkProfile, entryPoint: Address) => {
  const version = profile.entryPoints.includes(entryPoint) ? EntryPoint.versionOf(entryPoint) : undefined
  return version === undefined
    ? invalidAt(
        "settings.entryPoint",
        `expected one of ${profile.entryPoints.join(", ")}`,
        "unsupported_entry_point"
      )
    : Effect.succeed(version)
}
