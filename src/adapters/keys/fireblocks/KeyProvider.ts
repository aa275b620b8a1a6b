import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { KeyProvider, KeyProviderError, ProviderKey } from "../../../application/ports/KeyProvider.js"
import * as Secp256k1 from "../../../domain/crypto/Secp256k1.js"
import * as Connection from "./Connection.js"
import * as SigningRequests from "./SigningRequests.js"

/** Connection to Fireblocks. A key's name is `vaultAccountId/assetId`. */
export interface Options extends Connection.Options {
  /** Polling interval of a waiting transaction, in ms. Default 1,000. */
  readonly pollMillis?: number | undefined
  /** Time-out for all signatures, including approval, in ms. Default 20,000. */
  readonly timeoutMillis?: number | undefined
}

/** Most messages of one transaction. */
const maxBatch = 127

const nameShape = /^([0-9]{1,20})\/([A-Za-z0-9][A-Za-z0-9_.-]{0,79})$/

const misnamed = Connection.failure("notFound", "expected vaultAccountId/assetId")
const unsuitable = Connection.failure("unsuitable", "the key is not of algorithm MPC_ECDSA_SECP256K1")

const absent: ProviderKey = {
  type: "MPC",
  maxBatch,
  publicKey: misnamed,
  sign: () => misnamed
}

const publicKeyOf = (data: unknown) => {
  const { algorithm, publicKey }: { algorithm?: unknown; publicKey?: unknown } =
    typeof data === "object" && data !== null ? data : {}
  if (typeof algorithm === "string" && algorithm !== "MPC_ECDSA_SECP256K1") return unsuitable
  const point = typeof publicKey === "string" ? Secp256k1.fromPoint(publicKey.toLowerCase()) : null
  return point === null ? Connection.broken("the answer holds no public key") : Effect.succeed(point)
}

const keyOf = (
  call: Connection.Call,
  place: SigningRequests.Place,
  { pollMillis = 1_000, timeoutMillis = 20_000 }: Options
): ProviderKey => {
  const requests = SigningRequests.make(call, place, pollMillis)
  return {
    type: "MPC",
    maxBatch,
    publicKey: call(({ vaults }) =>
      vaults.getPublicKeyInfoForAddress({ ...place, change: 0, addressIndex: 0, compressed: false })
    ).pipe(
      Effect.mapError(Connection.fromSdk),
      Effect.flatMap(({ data }) => publicKeyOf(data)),
      Effect.timeoutOrElse({
        duration: timeoutMillis,
        orElse: () => Connection.broken("no answer in time")
      })
    ),
    sign: (digests) =>
      Effect.suspend(() => {
        let last = "no answer in time"
        const logStatus = (status: string) => {
          last = `the transaction is still ${status}`
        }
        return Effect.timeoutOrElse(requests(digests, logStatus), {
          duration: timeoutMillis,
          orElse: () => Connection.broken(last)
        })
      })
  }
}

/** Provides keys of Fireblocks. Connections and waiting transactions are remembered as long as the scope lives. */
export const make = (options: Options): Effect.Effect<KeyProvider, KeyProviderError, Scope.Scope> =>
  Effect.map(Connection.make(options), (call) => {
    const keys = new Map<string, ProviderKey>()
    return {
      key: (name) => {
        const [, vaultAccountId, assetId] = nameShape.exec(name) ?? []
        if (vaultAccountId === undefined || assetId === undefined) return absent
        const known = keys.get(name) ?? keyOf(call, { vaultAccountId, assetId }, options)
        keys.set(name, known)
        return known
      }
    }
  })
