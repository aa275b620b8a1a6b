import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type * as Redacted from "effect/Redacted"
import * as Schedule from "effect/Schedule"
import type * as Scope from "effect/Scope"
import * as Semaphore from "effect/Semaphore"
import * as Troubles from "../observe/Troubles.js"
import { KillSwitches, KillSwitchesError } from "../ports/KillSwitches.js"
import { type Content, idOf, TenantStore, TenantStoreError } from "../ports/TenantStore.js"
import { type AccountId, type Principal, Tenants, TenantsError } from "../ports/Tenants.js"
import type { Listed } from "./FileAccounts.js"
import * as FileAccounts from "./FileAccounts.js"
import * as KnownKeys from "./KnownKeys.js"

/**
 * Knows the accounts, keys and pauses of the configuration file and of the store. It implements the ports `Tenants` and
 * `KillSwitches`.
 */

/** Age up to which the cached content decides, milliseconds. */
const freshMillis = 500

/** Age up to which the cached content decides about an unknown key, which may be new, milliseconds. */
const newcomerMillis = 50

/** Time limit of the store's answer, milliseconds. */
const patienceMillis = 5_000

/** Interval for writing the last uses of keys, milliseconds. */
const noteMillis = 60_000

/** A key that may be used until its end. */
interface Holder {
  readonly principal: Principal
  readonly endsAt: number
}

interface Snapshot {
  readonly content: Content
  readonly version: number
  readonly holders: ReadonlyMap<string, Holder>
  readonly paused: ReadonlySet<string>
  readonly accounts: ReadonlyMap<AccountId, Pick<Principal, "paused">>
}

const pauseName = (kind: Content["pauses"][number]["kind"], subject: string): string => `${kind} ${subject}`

const snapshotOf = (listed: ReadonlyArray<Listed>, content: Content, version: number): Snapshot => {
  const paused = new Set(content.pauses.map(({ kind, subject }) => pauseName(kind, subject)))
  const holders = new Map<string, Holder>()
  const accounts = new Map<AccountId, Omit<Principal, "keyId" | "scopes">>()
  const isPaused = (id: AccountId) => paused.has(pauseName("account", id))
  // The file wins for a name that is in both.
  for (const { createdAt: _, ...account } of content.accounts)
    accounts.set(account.accountId, { ...account, paused: isPaused(account.accountId) })
  for (const { keys: _, ...account } of listed)
    accounts.set(account.accountId, { ...account, paused: account.paused || isPaused(account.accountId) })
  for (const { accountId, endsAt, hash, scopes } of KnownKeys.all(listed, content)) {
    const account = accounts.get(accountId)
    if (account !== undefined)
      holders.set(hash, {
        principal: { ...account, scopes: new Set(scopes), keyId: idOf(hash) },
        endsAt: endsAt ?? Number.POSITIVE_INFINITY
      })
  }
  return { content, version, holders, paused, accounts }
}

export interface Options {
  /** The keyed hash of a key; null for a malformed key. */
  readonly hash: (apiKey: Redacted.Redacted<string>) => string | null
  readonly accounts: ReadonlyArray<FileAccounts.FileAccount>
}

/** Holders of keys, and pauses: accounts of the configuration file and of the store together. */
export class Directory extends Context.Service<
  Directory,
  {
    /** The store's content, less than half a second old. The same object until it changes. */
    readonly content: Effect.Effect<Content, TenantStoreError>
    /** `content`, or the last known content when the store does not answer. */
    readonly latest: Effect.Effect<Content>
    readonly authenticate: (
      apiKey: Redacted.Redacted<string>
    ) => Effect.Effect<Principal | null, TenantStoreError>
    readonly hasKey: (accountId: AccountId, keyId: string) => Effect.Effect<boolean, TenantStoreError>
    readonly isPaused: (
      kind: Content["pauses"][number]["kind"],
      subject: string
    ) => Effect.Effect<boolean, TenantStoreError>
    /** Whether the account is known and not paused. */
    readonly isActive: (accountId: AccountId) => Effect.Effect<boolean, TenantStoreError>
  }
>()("castellan/Directory") {}

/**
 * Reads the store once. On a use after half a second, reads its version, and its content if that has changed; for an
 * unknown key at most twenty times a second. If the store does not confirm in time, access is denied.
 */
export const make = Effect.fnUntraced(function* (
  options: Options
): Effect.fn.Return<Directory["Service"], TenantStoreError | TenantsError, TenantStore | Scope.Scope> {
  const store = yield* TenantStore
  const listed = yield* FileAccounts.check(options.accounts)

  const read = Effect.gen(function* () {
    const version = yield* store.version
    return snapshotOf(listed, yield* store.content, version)
  })
  const first = yield* Clock.currentTimeMillis
  let known = { at: first, snapshot: yield* read }
  const isYounger = (millis: number, now: number) => now >= known.at && now - known.at < millis
  const isFresh = (now: number) => isYounger(freshMillis, now)

  const turn = yield* Semaphore.make(1)
  const renew = (millis: number) =>
    turn
      .withPermits(1)(
        Effect.gen(function* () {
          const at = yield* Clock.currentTimeMillis
          if (isYounger(millis, at)) return known.snapshot
          const { snapshot } = known
          known = { at, snapshot: (yield* store.version) === snapshot.version ? snapshot : yield* read }
          return known.snapshot
        })
      )
      .pipe(
        Effect.timeoutOrElse({
          duration: patienceMillis,
          orElse: () =>
            new TenantStoreError({
              reason: "unavailable",
              message: "the store of accounts does not answer"
            })
        })
      )
  const current = Effect.flatMap(Clock.currentTimeMillis, (now) =>
    isFresh(now) ? Effect.succeed(known.snapshot) : renew(freshMillis)
  )

  let uses = new Map<string, number>()
  const troubles = Troubles.make()
  const trouble = { what: "the last uses of keys were not noted", place: "", isDelay: true }
  const note = Effect.gen(function* () {
    if (uses.size === 0) return
    const noted = uses
    uses = new Map()
    yield* Effect.matchEffect(store.noteUses(noted), {
      onFailure: (error) => {
        uses = new Map([...noted, ...uses])
        return troubles.failed(trouble, Cause.fail(error))
      },
      onSuccess: () => troubles.passed(trouble)
    })
  })
  yield* Effect.addFinalizer(() => note)
  yield* Effect.forkScoped(Effect.repeat(Effect.delay(note, noteMillis), Schedule.forever))

  return {
    content: Effect.map(current, ({ content }) => content),
    latest: Effect.map(
      Effect.catch(current, () => Effect.sync(() => known.snapshot)),
      ({ content }) => content
    ),
    // The duration of the search depends on the hash, which the sender of a key neither knows nor chooses.
    authenticate: (apiKey) =>
      Clock.clockWith((clock) => {
        const holderOf = ({ holders }: Snapshot): Principal | null => {
          const hash = options.hash(apiKey)
          const holder = hash === null ? undefined : holders.get(hash)
          const now = clock.currentTimeMillisUnsafe()
          if (hash === null || holder === undefined || now >= holder.endsAt) return null
          uses.set(hash, now)
          return holder.principal
        }
        const now = clock.currentTimeMillisUnsafe()
        if (!isFresh(now)) return Effect.map(renew(freshMillis), holderOf)
        const holder = holderOf(known.snapshot)
        if (holder !== null || isYounger(newcomerMillis, now)) return Effect.succeed(holder)
        return Effect.orElseSucceed(Effect.map(renew(newcomerMillis), holderOf), () => null)
      }),
    hasKey: (accountId, keyId) =>
      Effect.zipWith(current, Clock.currentTimeMillis, ({ holders }, now) =>
        [...holders.values()].some(
          ({ endsAt, principal }) =>
            now < endsAt && principal.accountId === accountId && principal.keyId === keyId
        )
      ),
    isPaused: (kind, subject) => Effect.map(current, ({ paused }) => paused.has(pauseName(kind, subject))),
    isActive: (accountId) => Effect.map(current, ({ accounts }) => accounts.get(accountId)?.paused === false)
  }
})

/** The directory, and the ports that are views of it. */
export const layer = (
  options: Options
): Layer.Layer<Directory | Tenants, TenantStoreError | TenantsError, TenantStore> =>
  Layer.effectContext(
    Effect.map(make(options), (directory) =>
      Context.make(Directory, directory).pipe(
        Context.add(Tenants, {
          authenticate: (apiKey) =>
            Effect.mapError(directory.authenticate(apiKey), ({ message }) => new TenantsError({ message })),
          hasKey: (accountId, keyId) =>
            Effect.mapError(
              directory.hasKey(accountId, keyId),
              ({ message }) => new TenantsError({ message })
            )
        }),
        Context.add(KillSwitches, {
          isPaused: (what) =>
            Effect.mapError(
              what.kind === "account"
                ? Effect.map(directory.isActive(what.accountId), (isActive) => !isActive)
                : what.kind === "signer"
                  ? directory.isPaused("signer", what.address)
                  : directory.isPaused("chain", what.chainId.toString()),
              ({ message }) => new KillSwitchesError({ message })
            )
        })
      )
    )
  )
