import type * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SignerRef } from "../../application/ports/Signers.js"
import {
  type Account,
  changed,
  type Key,
  type OwnNetwork,
  type OwnSigner,
  type Pause,
  TenantStore,
  TenantStoreError
} from "../../application/ports/TenantStore.js"
import type { AccountId } from "../../application/ports/Tenants.js"

type Refusal = TenantStoreError | undefined

const refusal = (reason: TenantStoreError["reason"], message: string) =>
  new TenantStoreError({ reason, message })

const isOf =
  (account: AccountId, { assetId, clientId, versionId }: SignerRef) =>
  ({ accountId, ref }: OwnSigner): boolean =>
    accountId === account &&
    ref.clientId === clientId &&
    ref.versionId === versionId &&
    ref.assetId === assetId

/** Accounts and keys that end with the process. Long, since the port has many methods over the same few maps. */
export const make: Effect.Effect<Context.Tag.Service<typeof TenantStore>> = Effect.sync(() => {
  let version = 1
  const accounts = new Map<AccountId, Account>()
  const keys = new Map<string, Key>()
  const networks = new Map<string, OwnNetwork>()
  let signers: ReadonlyArray<OwnSigner> = []
  const pauses = new Map<string, Pause>()
  const uses = new Map<string, number>()

  /** A change says that it is none by the refusal that it gives back. */
  const written = (change: () => unknown): Effect.Effect<void, TenantStoreError> =>
    Effect.suspend(() => {
      const refused = change()
      if (refused instanceof TenantStoreError) return Effect.fail(refused)
      version += 1
      return Effect.void
    })

  const lacks = (account: AccountId): Refusal =>
    accounts.has(account)
      ? undefined
      : refusal("unknownAccount", `the database has no account called ${account}`)

  const end = (key: Key, endsAt: number): Refusal => {
    const known = keys.get(key.hash)
    if (known === undefined && key.origin === "command")
      return refusal("unknownKey", "the database has no such key")
    const before = known?.endsAt ?? null
    if (before === null || before > endsAt) keys.set(key.hash, { ...(known ?? key), endsAt })
  }

  const place = (account: AccountId, chainId: bigint) => `${chainId} ${account}`

  return {
    version: Effect.sync(() => version),
    content: Effect.sync(() => ({
      accounts: [...accounts.values()],
      keys: [...keys.values()],
      networks: [...networks.values()],
      signers,
      pauses: [...pauses.values()]
    })),

    createAccount: (account) =>
      written(() => {
        if (accounts.has(account.accountId))
          return refusal("accountExists", `another account is called ${account.accountId}`)
        accounts.set(account.accountId, account)
      }),
    changeAccount: (id, change) =>
      written(() => {
        const account = accounts.get(id)
        if (account === undefined) return lacks(id)
        accounts.set(id, changed(account, change))
      }),

    addKey: (key, replaced) =>
      written(() => {
        if (keys.has(key.hash)) return refusal("keyExists", "the key was issued before")
        const refused = replaced === undefined ? undefined : end(replaced.key, replaced.endsAt)
        if (refused === undefined) keys.set(key.hash, key)
        return refused
      }),
    endKey: (key, endsAt) => written(() => end(key, endsAt)),
    setScopes: (hash, scopes) =>
      written(() => {
        const key = keys.get(hash)
        if (key?.origin !== "command") return refusal("unknownKey", "the database has no such key")
        keys.set(hash, { ...key, scopes })
      }),

    setNetwork: (network) =>
      written(() => {
        const { accountId, chainId, factory } = network
        const owner = [...networks.values()].find(
          (other) => factory !== null && other.chainId === chainId && other.factory === factory
        )
        const refused = lacks(accountId)
        if (refused !== undefined) return refused
        if (owner !== undefined && owner.accountId !== accountId)
          return refusal(
            "factoryTaken",
            `account ${owner.accountId} has the factory ${factory} on chain ${chainId}`
          )
        networks.set(place(accountId, chainId), network)
      }),
    removeNetwork: (account, chainId) => written(() => networks.delete(place(account, chainId))),
    addSigner: (signer) =>
      written(() => {
        const { accountId, ref } = signer
        const refused = lacks(accountId)
        if (refused !== undefined) return refused
        if (signers.some(isOf(accountId, ref)))
          return refusal("signerExists", `account ${accountId} has a signer under this reference`)
        signers = [...signers, signer]
      }),
    removeSigner: (account, ref) =>
      written(() => {
        const named = isOf(account, ref)
        signers = signers.filter((signer) => !named(signer))
      }),

    pause: (pause) =>
      written(() => {
        const name = `${pause.kind} ${pause.subject}`
        if (!pauses.has(name)) pauses.set(name, pause)
      }),
    resume: (kind, subject) => written(() => pauses.delete(`${kind} ${subject}`)),

    noteUses: (noted) =>
      Effect.sync(() => {
        for (const [hash, at] of noted) uses.set(hash, Math.max(at, uses.get(hash) ?? 0))
      }),
    uses: Effect.sync(() => new Map(uses))
  }
})

export const layer: Layer.Layer<TenantStore> = Layer.effect(TenantStore, make)
