import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import * as KeyRing from "../../application/keys/KeyRing.js"
import type { KeyRingError } from "../../application/keys/KeyRingRules.js"
import { SignerError, Signers, SystemSigners } from "../../application/ports/Signers.js"
import type { Content, OwnSigner } from "../../application/ports/TenantStore.js"
import { Directory } from "../../application/tenants/Directory.js"

/** A database signer in the key ring's form. */
export const recordOf = ({ accountId, address, key, provider, ref }: OwnSigner): KeyRing.SignerRecord => ({
  ...ref,
  accountIds: [accountId],
  source: { provider, key, ...(address !== null && { address }) }
})

type Named = Pick<OwnSigner, "accountId" | "ref">

/** Whether requests name both by the same ids. */
export const isSame = (one: Named, other: Named): boolean =>
  one.accountId === other.accountId &&
  one.ref.clientId === other.ref.clientId &&
  one.ref.versionId === other.ref.versionId &&
  one.ref.assetId === other.ref.assetId

/**
 * The configuration's keys and the current keys of database accounts. At the start all must be valid. Later, an invalid key
 * among the new ones excludes all new keys, with a log entry.
 */
export const layer = (
  registry: KeyRing.Registry
): Layer.Layer<Signers | SystemSigners, KeyRingError, Directory> =>
  Layer.effectContext(
    Effect.gen(function* () {
      const directory = yield* Directory
      const ring = yield* KeyRing.make(registry)
      let seen: Content = yield* directory.latest
      let admitted = seen.signers
      yield* ring.admit(admitted.map(recordOf))

      const turn = yield* Semaphore.make(1)
      /** Removes deleted keys immediately, whatever faults the new ones have. */
      const follow = (content: Content) =>
        turn.withPermits(1)(
          Effect.gen(function* () {
            if (content === seen) return
            seen = content
            const admit = (signers: ReadonlyArray<OwnSigner>) =>
              Effect.map(ring.admit(signers.map(recordOf)), () => {
                admitted = signers
              })
            const kept = admitted.filter((signer) => content.signers.some((other) => isSame(signer, other)))
            if (kept.length < admitted.length) yield* Effect.ignoreCause(admit(kept), { log: "Debug" })
            if (content.signers.length > kept.length)
              yield* Effect.catch(admit(content.signers), ({ message }) =>
                Effect.logError("account signers unusable").pipe(Effect.annotateLogs({ problems: message }))
              )
          })
        )

      return Context.make(Signers, {
        resolve: (account, ref) =>
          Effect.gen(function* () {
            // A database failure concerns no key: users of the database report it themselves.
            const content = yield* directory.latest
            if (content !== seen) yield* follow(content)
            return yield* ring.signers.resolve(account, ref)
          })
      }).pipe(
        Context.add(SystemSigners, {
          ...ring.systemSigners,
          // The sponsor key signs for other keys' requests, so its pause is checked here.
          sponsor: Effect.tap(ring.systemSigners.sponsor, ({ address }) =>
            Effect.flatMap(
              Effect.orElseSucceed(directory.isPaused("signer", address), () => true),
              (paused) =>
                paused
                  ? Effect.fail(new SignerError({ reason: "refused", message: "writes are paused" }))
                  : Effect.void
            )
          )
        })
      )
    })
  )
