import * as Effect from "effect/Effect"
import { computeAddress } from "ethers"
import * as Client from "../../../client/Client.js"
import { DevError } from "./DevChain.js"
import type { DevInfo } from "./DevStack.js"

export interface Executed {
  readonly wallet: string
  readonly txHash: string
  /** Command that repeats the operation. */
  readonly command: string
}

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const curl = ({ apiKeys, baseUrl }: DevInfo, path: string, body: unknown): string =>
  `curl -s ${baseUrl}${path} -H 'X-API-Key: ${apiKeys.pro}' -H 'Content-Type: application/json' -d ${quote(JSON.stringify(body))}`

const account = { salt: "first", walletCustody: 1 } as const

const refuse = (path: string, why: string) =>
  new DevError({ message: `${path} of the first wallet failed: ${why.slice(0, 1_000)}` })

const ask = <A>(path: string, call: () => Promise<A>): Effect.Effect<A, DevError> =>
  Effect.tryPromise({
    try: call,
    catch: (why) => refuse(path, why instanceof Error ? why.message : String(why))
  })

const settled = <A extends { readonly status: number }>(path: string, call: () => Promise<A>) =>
  Effect.filterOrFail(
    ask(path, call),
    ({ status }) => status === 1,
    (answer) => refuse(path, JSON.stringify(answer))
  )

/** Creates a sponsored wallet and mints tokens with it, through the service's HTTP API. */
export const execute = (info: DevInfo): Effect.Effect<Executed, DevError> =>
  Effect.gen(function* () {
    const { paymaster, settings } = info
    const client = Client.make({ baseUrl: info.baseUrl, apiKey: info.apiKeys.pro })
    const accounts = [account]
    const [found] = yield* ask("/check", () => client.check({ accounts, settings }))
    if (found?.exists !== true)
      yield* settled("/create", () => client.create({ accounts, settings: { ...settings, paymaster } }))
    const operation = {
      ...account,
      to: info.token,
      funcSignature: "mint(address,uint256)",
      funcParams: [computeAddress(info.faucetPrivateKey), "1000"]
    }
    const { entryPoint, rpc, signer } = settings
    const body = { operations: [operation], settings: { rpc, entryPoint, signer, paymaster } }
    const { txHash } = yield* settled("/execute", () => client.execute(body))
    return { wallet: found?.wallet ?? "", txHash, command: curl(info, "/execute", body) }
  })
