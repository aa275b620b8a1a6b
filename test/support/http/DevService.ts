import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Logger from "effect/Logger"
import * as Scope from "effect/Scope"
import { Contract, HDNodeWallet, type JsonRpcProvider, Mnemonic, NonceManager, Wallet } from "ethers"
import * as DevStack from "../../../src/hosts/cli/dev/DevStack.js"
import * as Provider from "../../../src/hosts/cli/support/Provider.js"
import { startNode } from "../../../tools/PreparedChain.js"
import * as SetClock from "../SetClock.js"
import { mined } from "../suite/Receipt.js"

/** Body of every answer that is not 200. */
export interface Envelope {
  readonly error: string
  readonly code: string
  readonly requestId: string
  readonly details: ReadonlyArray<{
    readonly path: string
    readonly message: string
    readonly [name: string]: unknown
  }>
  readonly txHash?: string
  readonly txHashes?: ReadonlyArray<string>
  readonly returnData?: ReadonlyArray<Readonly<Record<string, OperationResult>>>
}

export interface OperationResult {
  readonly userOpHash: string | null
  readonly success: boolean
  readonly error: string | null
  readonly result: unknown
  readonly txHash: string | null
}

export interface Log {
  readonly address: string
  readonly logIndex: number
  readonly eventName: string | null
  readonly eventDef: string | null
  readonly args: Readonly<Record<string, unknown>>
  readonly topics: ReadonlyArray<string>
  readonly data: string
}

export interface TransactionResult<Element = OperationResult> {
  readonly status: number
  readonly txHash: string
  readonly cumulativeGasUsed: number
  readonly gasUsed: number
  readonly effectiveGasPrice: string
  readonly returnData: ReadonlyArray<Readonly<Record<string, Element>>>
  readonly logs: ReadonlyArray<Log>
  readonly txHashes: ReadonlyArray<string>
}

export type CreateResult = TransactionResult<{
  readonly salt: string
  readonly wallet: string
  readonly error?: string
}>

export interface RequestState {
  readonly requestId: string
  readonly endpoint: string
  readonly state: "pending" | "final" | "refused"
  readonly acceptedAt: number
  readonly metadata: Readonly<Record<string, string>>
  readonly txHashes: ReadonlyArray<string>
  readonly httpStatus: number | null
  readonly answer: unknown
}

export interface Prediction {
  readonly salt: string
  readonly wallet: string
  readonly error: string | null
}

export interface EstimatedOp {
  readonly encodedUserOp: string
  readonly userOpHash: string
  readonly signingHash: string
  readonly bundler: string
  readonly aggrIndexes: ReadonlyArray<number>
}

export interface Estimate {
  readonly status: number
  readonly gas: number
  readonly userOps: ReadonlyArray<EstimatedOp>
  readonly error: string | null
}

export interface Answer<Body> {
  readonly status: number
  readonly headers: Headers
  readonly body: Body
  readonly text: string
}

export interface Ask {
  readonly key?: string | null
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A development stack in this process, and a client that knows only its dev.json and its OpenAPI document. */
export interface DevService {
  readonly info: DevStack.DevInfo
  readonly provider: JsonRpcProvider
  /** Key of the request's signer in the development profile. */
  readonly signer: Wallet
  readonly token: Contract
  /** Sends a JSON value, or a string unchanged. */
  readonly ask: <Body>(path: string, body: unknown, ask?: Ask) => Promise<Answer<Body>>
  /** The body of an answer that must be 200. */
  readonly ok: <Body>(path: string, body: unknown) => Promise<Body>
  /** The body of an answer that must have this status. */
  readonly refused: (status: number, path: string, body: unknown, ask?: Ask) => Promise<Envelope>
  /** Calls a writing endpoint with an idempotency key. */
  readonly keyed: <Body>(path: string, body: unknown, key: string, ask?: Ask) => Promise<Answer<Body>>
  /** GET of a request's state. */
  readonly request: <Body = RequestState>(requestId: string, ask?: Ask) => Promise<Answer<Body>>
  /** Switches automining; switching it on mines pending transactions. */
  readonly automine: (on: boolean) => Promise<void>
  /** Addresses of wallets of custody 1. */
  readonly predict: (...salts: ReadonlyArray<string>) => Promise<ReadonlyArray<string>>
  readonly fund: (address: string, wei?: bigint) => Promise<void>
  /** Funds and creates wallets of custody 1; returns their addresses. */
  readonly create: (...salts: ReadonlyArray<string>) => Promise<ReadonlyArray<string>>
  /** A /transactSigner body that pays `wei` to an unused address. */
  readonly payment: (wei?: number) => object
  /** An /execute body for the wallet with this salt, with one mint operation per amount. */
  readonly mint: (
    salt: string,
    to: string,
    ...amounts: ReadonlyArray<number>
  ) => { readonly operations: ReadonlyArray<object>; readonly settings: object }
  /** Everything that the service has logged so far. */
  readonly log: () => string
  readonly stop: () => Promise<void>
}

const mnemonic = Mnemonic.fromPhrase("test test test test test test test test test test test junk")

/** anvil's well-known keys. */
export const anvilKey = (index: number): Wallet =>
  new Wallet(HDNodeWallet.fromMnemonic(mnemonic, `m/44'/60'/0'/0/${index}`).privateKey)

const tokenAbi = [
  "function mint(address,uint256)",
  "function balanceOf(address) view returns (uint256)",
  "function allowance(address,address) view returns (uint256)"
]

/** Takes payments of tests. */
export const nobody = "0x000000000000000000000000000000000000dEaD"

/** The first element of a request's results. */
export const elementAt = <Element>(
  returnData: ReadonlyArray<Readonly<Record<string, Element>>> | undefined,
  index: number
): Element => {
  const element = returnData?.[index]?.[index]
  if (element === undefined) throw new Error(`returnData has no element ${index}`)
  return element
}

export const first = <A>(list: ReadonlyArray<A>): A => {
  const [head] = list
  if (head === undefined) throw new Error("the list is empty")
  return head
}

/** Inputs for a client of a service. */
export interface Place extends Pick<DevService, "info" | "log" | "provider" | "signer" | "stop"> {}

interface Options extends Partial<DevStack.Options> {
  /** Lead of the service's clock, milliseconds; default: none. */
  readonly clockAhead?: () => number
}

/** Starts a service for exclusive use. */
export const start = async ({ clockAhead = () => 0, ...options }: Options = {}): Promise<DevService> => {
  const lines: Array<string> = []
  const capture = Logger.layer([Logger.map(Logger.formatLogFmt, (line) => void lines.push(line))])
  const scope = await Effect.runPromise(Scope.make())
  const inScope = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
    Effect.runPromise(Scope.provide(SetClock.settable(clockAhead)(Effect.provide(effect, capture)), scope))
  const info = await inScope(
    DevStack.start({ port: 0, rpcPort: 0, chainId: 31337, blockTime: null, startNode, ...options })
  )
  const provider = await inScope(Provider.connect(info.rpc, info.chainId))
  return on({
    info,
    provider,
    signer: anvilKey(1).connect(provider),
    log: () => lines.join("\n"),
    stop: () => Effect.runPromise(Scope.close(scope, Exit.void))
  })
}

/** A client of a running service. */
export const on = (place: Place): DevService => {
  const { info, provider } = place
  const faucet = new NonceManager(new Wallet(info.faucetPrivateKey, provider))

  const ask = async <Body>(path: string, body: unknown, options: Ask = {}): Promise<Answer<Body>> => {
    const { headers = {}, key = info.apiKeys.enterprise, method = "POST" } = options
    const answer = await fetch(info.baseUrl + path, {
      method,
      headers: { "content-type": "application/json", ...(key !== null && { "x-api-key": key }), ...headers },
      ...(body !== undefined && { body: typeof body === "string" ? body : JSON.stringify(body) })
    })
    const text = await answer.text()
    return { status: answer.status, headers: answer.headers, body: JSON.parse(text), text }
  }
  const expecting = async <Body>(status: number, path: string, body: unknown, options?: Ask) => {
    const answer = await ask<Body>(path, body, options)
    if (answer.status !== status)
      throw new Error(`${path} answered ${answer.status}, not ${status}: ${answer.text.slice(0, 2_000)}`)
    return answer.body
  }
  const ok = <Body>(path: string, body: unknown) => expecting<Body>(200, path, body)
  const predict = async (...salts: ReadonlyArray<string>) => {
    const accounts = salts.map((salt) => ({ salt, walletCustody: 1 }))
    const { beaconAdminAddress, beaconAdminCreationCode, factory } = info.settings
    const predictions = await ok<ReadonlyArray<Prediction>>("/predict", {
      accounts,
      settings: { factory, beaconAdminAddress, beaconAdminCreationCode }
    })
    return predictions.map(({ wallet }) => wallet)
  }
  const fund = async (address: string, wei = 10n ** 18n) => {
    await mined(await faucet.sendTransaction({ to: address, value: wei }))
  }
  return {
    ...place,
    token: new Contract(info.token, tokenAbi, faucet),
    ask,
    ok,
    refused: (status, path, body, options) => expecting<Envelope>(status, path, body, options),
    keyed: (path, body, key, options = {}) =>
      ask(path, body, { ...options, headers: { ...options.headers, "idempotency-key": key } }),
    request: (requestId, options = {}) =>
      ask(`/requests/${requestId}`, undefined, { ...options, method: "GET" }),
    automine: async (on) => {
      await provider.send("evm_setAutomine", [on])
      if (on) await provider.send("evm_mine", [])
    },
    predict,
    fund,
    create: async (...salts) => {
      const wallets = await predict(...salts)
      await Promise.all(wallets.map((wallet) => fund(wallet)))
      const result = await ok<CreateResult>("/create", {
        accounts: salts.map((salt) => ({ salt, walletCustody: 1 })),
        settings: info.settings
      })
      if (result.status !== 1) throw new Error(`the wallets were not created: ${JSON.stringify(result)}`)
      return wallets
    },
    payment: (wei = 1) => ({
      to: nobody,
      value: String(wei),
      settings: { rpc: info.rpc, signer: info.settings.signer }
    }),
    mint: (salt, to, ...amounts) => ({
      operations: amounts.map((amount) => ({
        salt,
        walletCustody: 1,
        to: info.token,
        funcSignature: "mint(address,uint256)",
        funcParams: [to, String(amount)]
      })),
      settings: info.settings
    })
  }
}
