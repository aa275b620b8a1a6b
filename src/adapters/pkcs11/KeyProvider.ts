import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { KeyProvider, KeyProviderError, ProviderKey } from "../../application/ports/KeyProvider.js"
import type { Bytes32 } from "../../domain/primitives/Hex.js"
import * as KeyPair from "./KeyPair.js"
import * as Token from "./Token.js"

/** How a token is reached. The name of a key is its label, or `id:` and its id in hex. */
export type Options = Token.Options

const keyOf = (token: Token.Token, name: string): ProviderKey => {
  /** Handles of objects hold as long as the connection. */
  const known = new WeakMap<Token.Connection, KeyPair.KeyPair>()
  const fresh = (session: Token.Session) =>
    Effect.tap(KeyPair.find(session, name), (pair) =>
      Effect.sync(() => void known.set(session.connection, pair))
    )

  const sign = (digest: Bytes32) =>
    token.use((session) =>
      Effect.gen(function* () {
        const pair = known.get(session.connection) ?? (yield* fresh(session))
        return yield* KeyPair.sign(session, pair, Buffer.from(digest.slice(2), "hex"))
      })
    )

  return {
    type: "HSM",
    maxBatch: 1,
    publicKey: Effect.map(token.use(fresh), ({ publicKey }) => publicKey),
    sign: (digests) => Effect.forEach(digests, sign)
  }
}

/**
 * Keys of a PKCS #11 token. Logs in at once, so that a wrong PIN is said at the start. Lost sessions, logins and tokens
 * are `unavailable` once, and are made anew when the key is used again.
 */
export const make = (options: Options): Effect.Effect<KeyProvider, KeyProviderError, Scope.Scope> =>
  Effect.gen(function* () {
    const token = yield* Token.make(options)
    yield* token.connect
    return { key: (name) => keyOf(token, name) }
  })
