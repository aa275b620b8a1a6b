import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Version } from "../../domain/erc4337/EntryPoint.js"
import * as Percent from "../../domain/erc4337/Percent.js"
import * as Json from "../../domain/json/Json.js"
import type { Address } from "../../domain/primitives/Address.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import * as Keccak from "../../domain/primitives/Keccak.js"
import { Lru } from "../../domain/primitives/Lru.js"
import * as Connection from "../chain/Connection.js"
import { type Failure, invalidAt } from "../failures/Failure.js"
import * as Keys from "../keys/Keys.js"
import type * as Payer from "../payers/Payer.js"
import { Payers } from "../payers/Payer.js"
import type { ChainClient, ChainRpc } from "../ports/chain/ChainRpc.js"
import type { NonceSpace } from "../ports/journal/Requests.js"
import type { LaneAccess } from "../ports/journal/Transactions.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import type { Networks } from "../ports/Networks.js"
import type { Signer, Signers } from "../ports/Signers.js"
import type { AccountId } from "../ports/Tenants.js"
import type { Caller } from "../request/Caller.js"
import type { ForOps, ForSigner, ForSubmission } from "../request/Settings.js"
import * as KillSwitch from "../tenants/KillSwitch.js"
import * as SignerAuthorization from "./SignerAuthorization.js"
import * as Wallets from "./wallets/Wallets.js"

/**
 * Resolves a request's settings to a context: node, submitter, EntryPoint, payer and gas buffers. Endpoints make it;
 * preparation and the lanes' workers read it.
 *
 * Gotchas: requests of an account with equal settings share one context, so no field is of a single request.
 */

const percentOf = (text: number): Percent.Percent => Result.getOrElse(Percent.from(text), () => Percent.zero)
/** Default buffer on the gas of ops and transactions. */
export const defaultGasOvershoot = percentOf(50)
const defaultPriceOvershoot = percentOf(20)

/** The request's buffers; by default 50 % on ops, 50 % on the transaction, 20 % on its price. */
const buffersOf = (
  settings: Pick<ForOps, "percentUserOpGasOvershoot" | "percentTxGasOvershoot" | "percentTxGasPriceOvershoot">
) => ({
  op: settings.percentUserOpGasOvershoot ?? defaultGasOvershoot,
  transaction: settings.percentTxGasOvershoot ?? defaultGasOvershoot,
  price: settings.percentTxGasPriceOvershoot ?? defaultPriceOvershoot
})

/** Highest buffer for ops that the operator pays for: the submitter gains from unused gas. */
const sponsoredMost = percentOf(100)

const sponsoredBuffers = ["percentUserOpGasOvershoot", "percentTxGasPriceOvershoot"] as const

const checkBuffers = (settings: ForOps): Effect.Effect<void, Failure> => {
  const name = sponsoredBuffers.find((field) => (settings[field] ?? Percent.zero) > sponsoredMost)
  return name === undefined
    ? Effect.void
    : Effect.fail(invalidAt(`settings.${name}`, "expected at most 100 with the operator's paymaster"))
}

/** Refuses a context for a paymaster without a service, and members that the operator does not permit. */
const checkContext = (
  { paymasterServices }: NetworkProfile,
  { paymaster, paymasterContext }: ForOps
): Effect.Effect<void, Failure> => {
  if (paymasterContext === undefined) return Effect.void
  const path = "settings.paymasterContext"
  const service = paymasterServices.find((each) => each.paymaster === paymaster)
  if (service === undefined)
    return invalidAt(
      path,
      "possible only with a settings.paymaster that has a service, for ops that the service builds"
    )
  const name = Object.keys(paymasterContext).find((each) => service.callerContext?.includes(each) !== true)
  return name === undefined
    ? Effect.void
    : invalidAt(Json.member(path, name), "the operator does not permit this member")
}

/** Settings that every endpoint that builds ops resolves before it reads the chain. */
export interface OpContext {
  readonly connection: Connection.Connection
  readonly accountId: AccountId
  readonly chainId: bigint
  readonly submitter: Address
  readonly entryPoint: Address
  readonly version: Version
  readonly formula: Wallets.Formula
  readonly buffers: ReturnType<typeof buffersOf>
  readonly spaceOf: (wallet: Address) => NonceSpace
  readonly payer: Payer.Payer
  /** Its one signature over all ops replaces theirs; null: each op has its own. */
  readonly aggregator: Address | null
}

/** Shared by an account's requests with the same submitter and node. */
interface Submission {
  readonly connection: Connection.Connection
  readonly accountId: AccountId
  readonly chainId: bigint
  /** Digest of account and settings. Stored requests are read only for digests not seen before. */
  readonly digest: Bytes32
  readonly submitter: Address
  readonly access: LaneAccess
  readonly buffers: ReturnType<typeof buffersOf>
  /** Keys and chains that the operator may pause. */
  readonly pausables: ReadonlyArray<KillSwitch.Pausable>
}

/** The context of requests whose ops are submitted: one object for all requests of an account with these settings. */
export interface Shared extends OpContext, Submission {
  readonly kind: "ops"
  readonly settings: Omit<ForOps, "useABI">
  /** The keys of settings.signer and settings.cosigners, in this order. */
  readonly signers: ReadonlyArray<Address>
}

/** The context of requests for transactions of the EOA, without an EntryPoint. */
export interface Direct extends Submission {
  readonly kind: "direct"
}

export type OfRequest = Shared | Direct

/** Connects to the operator's node when the operator pays for the ops, otherwise to the caller's. */
export const connect = (
  caller: Caller,
  settings: Pick<ForOps, "rpc" | "chainId" | "paymaster">
): Effect.Effect<Connection.Connection, Failure, ChainRpc | Networks> =>
  Effect.flatMap(Connection.open(caller, settings), (connection) =>
    settings.paymaster !== undefined && settings.paymaster === connection.profile.sponsor?.paymaster
      ? Connection.openOperator(caller, settings)
      : Effect.succeed(connection)
  )

export const contextOf = (
  caller: Caller,
  { connection, settings, submitter }: Pick<Route, "connection" | "settings" | "submitter">
): Effect.Effect<OpContext, Failure, Payers> =>
  Effect.gen(function* () {
    const { chainId } = connection.profile
    const { entryPoint, paymaster, paymasterContext } = settings
    const payers = yield* Payers
    const version = yield* Connection.entryPointVersion(connection.profile, entryPoint)
    // Accepted requests continue, whichever factory the operator has configured since.
    const foreign = caller.resumed === true ? null : Wallets.foreignFactory(connection.profile, settings)
    if (foreign !== null) return yield* Effect.fail(foreign)
    if (caller.resumed !== true) yield* checkContext(connection.profile, settings)
    const formula = yield* Effect.fromResult(Wallets.formula(connection.profile, settings))
    if (paymaster !== undefined && paymaster === connection.profile.sponsor?.paymaster)
      yield* checkBuffers(settings)
    const spaceOf = (wallet: Address) => ({ authority: submitter, chainId, entryPoint, wallet })
    return {
      connection,
      accountId: caller.principal.accountId,
      chainId,
      submitter,
      entryPoint,
      version,
      formula,
      buffers: buffersOf(settings),
      spaceOf,
      payer: yield* payers.of(caller.principal.accountId, connection, {
        entryPoint,
        version,
        paymaster,
        paymasterContext,
        submitter
      }),
      aggregator: settings.aggregator ?? null
    }
  })

/** Most cached contexts; each holds a creation code of some kilobytes. */
const most = 1_024

/** Keyed by profile: a new configuration of the chain gets new contexts. */
const contexts = new WeakMap<NetworkProfile, Lru<string, Shared>>()

const knownOf = (profile: NetworkProfile): Lru<string, Shared> => {
  const known = contexts.get(profile) ?? new Lru<string, Shared>(most)
  contexts.set(profile, known)
  return known
}

const bigints = (_: string, value: unknown) => (typeof value === "bigint" ? value.toString() : value)

const isOf = (
  shared: Shared,
  signers: ReadonlyArray<Signer>,
  { chain, trust }: { readonly chain: ChainClient; readonly trust: string }
): boolean =>
  shared.connection.chain === chain &&
  shared.connection.trust === trust &&
  shared.signers.every((address, place) => signers[place]?.address === address)

/** Fails while the operator has paused one of its keys or its chain. */
export const checkPauses = ({ pausables }: Pick<OfRequest, "pausables">): Effect.Effect<void, Failure> =>
  Effect.forEach(pausables, KillSwitch.check, { discard: true })

/** The submitter of a request's ops, and its node. */
export interface Route {
  readonly connection: Connection.Connection
  readonly submitter: Address
  readonly key: LaneAccess["key"]
  readonly signers: ReadonlyArray<Signer>
  readonly settings: Omit<ForOps, "useABI">
  /** Other things that the operator may pause, the same for all requests with these settings that have any. */
  readonly pausables?: Effect.Effect<ReadonlyArray<KillSwitch.Pausable>, Failure>
}

/** The context of a request on this route; computed once per settings. */
export const of = (caller: Caller, route: Route): Effect.Effect<Shared, Failure, Payers> =>
  Effect.gen(function* () {
    const { connection, key, pausables, settings, signers, submitter } = route
    const { accountId } = caller.principal
    const known = knownOf(connection.profile)
    const { chainId } = connection.profile
    // The name includes the chain: where the settings name no node, the caller may.
    const name = JSON.stringify(
      [
        accountId,
        chainId.toString(),
        submitter,
        connection.trust,
        settings,
        ...(pausables === undefined ? [] : ["pausables"])
      ],
      bigints
    )
    const before = known.get(name)
    // Accepted requests continue, whatever the operator has paused since.
    const check = caller.resumed === true ? () => Effect.void : checkPauses
    if (before !== undefined && isOf(before, signers, connection)) {
      yield* check(before)
      return before
    }
    const context = yield* contextOf(caller, route)
    const shared: Shared = {
      ...context,
      kind: "ops",
      digest: Keccak.hashText(name),
      settings,
      signers: signers.map(({ address }) => address),
      access: Connection.access(caller, connection, key),
      pausables: [
        ...signers.map(({ address }, place) => ({
          what: { kind: "signer" as const, address },
          path: pathOf(settings, place)
        })),
        ofChain(chainId, settings),
        ...(key === "serviceEoa"
          ? [{ what: { kind: "signer" as const, address: submitter }, path: "settings.signer" }]
          : []),
        ...(pausables === undefined ? [] : yield* pausables)
      ]
    }
    yield* check(shared)
    known.set(name, shared)
    return shared
  })

/** The chain as a request names it. */
export const ofChain = (
  chainId: bigint,
  { chainId: named, rpc }: Pick<ForOps, "chainId" | "rpc">
): KillSwitch.Pausable => ({
  what: { kind: "chain", chainId },
  path: rpc === undefined && named !== undefined ? "settings.chainId" : "settings.rpc"
})

/** The settings' field of the key at that place. */
export const pathOf = ({ signer }: Pick<ForOps, "signer">, place: number): string =>
  signer === undefined
    ? `settings.cosigners[${place}]`
    : place === 0
      ? "settings.signer"
      : `settings.cosigners[${place - 1}]`

/** The context of a request whose settings name the keys that sign and submit it. */
export const load = (
  caller: Caller,
  { useABI: _, ...settings }: ForSubmission
): Effect.Effect<Shared, Failure, ChainRpc | Networks | Payers | Signers> =>
  Effect.gen(function* () {
    const signers = yield* SignerAuthorization.signersOf(caller, settings)
    const [signer] = signers
    if (signer === undefined) return yield* Effect.die(new Error("the request names no signer"))
    const connection = yield* connect(caller, settings)
    return yield* of(caller, {
      connection,
      submitter: signer.address,
      key: settings.signer,
      signers,
      settings
    })
  })

/** The context of a request for a signer's transaction, or for its repricing. */
export const direct = (
  caller: Caller,
  { useABI: _, ...settings }: ForSigner
): Effect.Effect<Direct, Failure, ChainRpc | Networks | Signers> =>
  Effect.gen(function* () {
    const { address } = yield* Keys.resolve(caller, settings.signer)
    const connection = yield* Connection.open(caller, settings)
    return yield* directOf(caller, { connection, submitter: address, key: settings.signer, settings })
  })

/** The context of a request for a transaction of this EOA. */
export const directOf = (
  caller: Caller,
  route: Pick<Route, "connection" | "key" | "submitter"> & {
    readonly settings: Omit<ForOps, "entryPoint" | "useABI">
  }
): Effect.Effect<Direct, Failure> =>
  Effect.gen(function* () {
    const { accountId } = caller.principal
    const { connection, key, settings, submitter } = route
    const { chainId } = connection.profile
    const context: Direct = {
      kind: "direct",
      connection,
      accountId,
      chainId,
      digest: Keccak.hashText(
        JSON.stringify(
          [accountId, chainId.toString(), submitter, connection.trust, "direct", settings],
          bigints
        )
      ),
      submitter,
      access: Connection.access(caller, connection, key),
      buffers: buffersOf(settings),
      pausables: [
        { what: { kind: "signer", address: submitter }, path: "settings.signer" },
        ofChain(chainId, settings)
      ]
    }
    // Accepted requests continue, whatever the operator has paused since.
    if (caller.resumed !== true) yield* checkPauses(context)
    return context
  })
