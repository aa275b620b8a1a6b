import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { computeAddress } from "ethers"
import type { DevInfo } from "./DevStack.js"
import * as Tour from "./Tour.js"

/** An operation that has been executed on a development stack. */
export interface Executed {
  readonly wallet: string
  readonly txHash: string
  /** Executes it again. */
  readonly command: string
}

/** A stack that has just started does not do what it is for. */
export class FirstOperationError extends Data.TaggedError("FirstOperationError")<{
  readonly message: string
}> {}

const account = { salt: "first", walletCustody: 1 }

const refuse = (path: string, why: string) =>
  new FirstOperationError({ message: `${path} of the first wallet failed: ${why.slice(0, 1_000)}` })

const call = (
  { apiKeys, baseUrl }: DevInfo,
  path: string,
  body: unknown
): Effect.Effect<unknown, FirstOperationError> =>
  Effect.tryPromise({
    try: async () => {
      const answer = await fetch(`${baseUrl}${path}`, {
        method: "POST",
        headers: { "content-type": "application/json", "x-api-key": apiKeys.pro },
        body: JSON.stringify(body)
      })
      const text = await answer.text()
      if (!answer.ok) throw new Error(text)
      return JSON.parse(text)
    },
    catch: (cause) => refuse(path, cause instanceof Error ? cause.message : String(cause))
  })

const Found = Schema.Tuple([Schema.Struct({ wallet: Schema.String, exists: Schema.Boolean })])
const Done = Schema.Struct({ status: Schema.Literal(1), txHash: Schema.String })

/** Creates a wallet, which the paymaster pays for, and lets it mint tokens: through the service, as any caller would. */
export const execute = (info: DevInfo): Effect.Effect<Executed, FirstOperationError> =>
  Effect.gen(function* () {
    const ask = <A>(path: string, body: unknown, answer: Schema.Codec<A>) =>
      Effect.flatMap(call(info, path, body), (said) =>
        Effect.mapError(Schema.decodeUnknownEffect(answer)(said), () => refuse(path, JSON.stringify(said)))
      )
    const settings = { ...info.settings, paymaster: info.paymaster }
    const accounts = [account]
    const [{ exists, wallet }] = yield* ask("/check", { accounts, settings: info.settings }, Found)
    if (!exists) yield* ask("/create", { accounts, settings }, Done)
    const { entryPoint, rpc, signer } = info.settings
    const operation = {
      ...account,
      to: info.token,
      funcSignature: "mint(address,uint256)",
      funcParams: [computeAddress(info.faucetPrivateKey), "1000"]
    }
    const body = {
      operations: [operation],
      settings: { rpc, entryPoint, signer, paymaster: info.paymaster }
    }
    const { txHash } = yield* ask("/execute", body, Done)
    return { wallet, txHash, command: Tour.request(info, "/execute", body) }
  })
