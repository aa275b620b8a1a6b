import * as Arr from "effect/Array"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { SqlError } from "effect/sql/SqlError"
import {
  type Account,
  idOf,
  type Key,
  type OwnNetwork,
  type OwnSigner,
  type Pause,
  TenantStore,
  TenantStoreError
} from "../../application/ports/TenantStore.js"
import type { AccountId, Scope } from "../../application/ports/Tenants.js"
import * as ErrorCode from "./ErrorCode.js"
import * as Migrations from "./Migrations.js"
import * as Policies from "./Policies.js"
import * as Store from "./Store.js"

/**
 * Implements the port `TenantStore` on SQL. Commands write accounts, keys, networks, signers and pauses; `Directory`
 * reads them. Each such change increments one version, by which other processes notice it.
 */

type Limits = "requestsPerMinute" | "requestsPerHour"

const refuse = (reason: TenantStoreError["reason"], message: string) =>
  Effect.fail(new TenantStoreError({ reason, message }))

const failed = (error: SqlError): TenantStoreError =>
  new TenantStoreError({
    reason: "unavailable",
    message: `the store of accounts failed${ErrorCode.suffix(error)}`
  })

export const make: Migrations.Stored<TenantStore["Service"]> = Effect.gen(function* () {
  const sql = yield* Migrations.client
  const inTransaction = Store.transaction(sql)

  const asked = <A, E>(effect: Effect.Effect<A, E | SqlError>) =>
    effect.pipe(
      Effect.catchIf(Store.isSqlError, (error) => Effect.fail(failed(error))),
      Effect.withTracerEnabled(false)
    )

  /** Updates the version first: its row excludes other writers until the change is durable. */
  const written = (change: Effect.Effect<unknown, TenantStoreError | SqlError>) =>
    asked(
      inTransaction(
        Effect.asVoid(
          Effect.andThen(sql`update account_changes set version = version + 1 where id = 1`, change)
        )
      )
    )

  const has = (account: AccountId) =>
    Effect.flatMap(sql`select 1 as one from accounts where account_id = ${account}`, (rows) =>
      rows.length > 0
        ? Effect.void
        : refuse("unknownAccount", `the database has no account called ${account}`)
    )

  const insertKey = ({ accountId, endsAt, hash, issuedAt, origin, scopes }: Key) => sql`
    insert into api_keys ${sql.insert({
      hash,
      account_id: accountId,
      scopes: scopes.join(" "),
      origin,
      issued_at: issuedAt,
      ends_at: endsAt
    })}`

  const end = (key: Key, endsAt: number) =>
    Effect.gen(function* () {
      const [known] = yield* sql<{ readonly ends_at: number | null }>`
        select ends_at from api_keys where hash = ${key.hash}`
      if (known === undefined) {
        if (key.origin === "command") return yield* refuse("unknownKey", "the database has no such key")
        return yield* insertKey({ ...key, endsAt })
      }
      if (known.ends_at !== null && known.ends_at <= endsAt) return
      yield* sql`update api_keys set ends_at = ${endsAt} where hash = ${key.hash}`
    })

  return {
    version: asked(
      Effect.map(
        sql<{ readonly version: number }>`select version from account_changes where id = 1`,
        ([row]) => row?.version ?? 0
      )
    ),
    content: asked(
      Effect.gen(function* () {
        const accounts = yield* sql<Omit<Account, Limits> & Readonly<Record<Limits, number | null>>>`
          select account_id as "accountId", name, tier, requests_per_minute as "requestsPerMinute",
            requests_per_hour as "requestsPerHour", created_at as "createdAt"
          from accounts order by number`
        const keys = yield* sql<Omit<Key, "scopes"> & { readonly scopes: string }>`
          select hash, account_id as "accountId", scopes, origin, issued_at as "issuedAt", ends_at as "endsAt"
          from api_keys order by number`
        const networks = yield* sql<Omit<OwnNetwork, "chainId"> & { readonly chainId: string }>`
          select account_id as "accountId", chain_id as "chainId", factory, settings
          from account_networks order by number`
        const signers = yield* sql<
          Omit<OwnSigner, "ref"> & {
            readonly clientId: string
            readonly versionId: string | null
            readonly assetId: string | null
          }
        >`
          select account_id as "accountId", client_id as "clientId", version_id as "versionId",
            asset_id as "assetId", provider, key_name as key, address
          from account_signers order by number`
        const pauses = yield* sql<Pause>`select kind, subject, since from pauses order by number`
        return {
          accounts: accounts.map(({ requestsPerHour, requestsPerMinute, ...account }) => ({
            ...account,
            ...(requestsPerMinute !== null && { requestsPerMinute }),
            ...(requestsPerHour !== null && { requestsPerHour })
          })),
          keys: keys.map((key) => ({ ...key, scopes: key.scopes.split(" ") as ReadonlyArray<Scope> })),
          networks: networks.map((network) => ({ ...network, chainId: BigInt(network.chainId) })),
          signers: signers.map(({ assetId, clientId, versionId, ...signer }) => ({
            ...signer,
            ref: {
              clientId,
              ...(versionId !== null && { versionId }),
              ...(assetId !== null && { assetId })
            }
          })),
          pauses: pauses.map(({ kind, since, subject }) => ({ kind, subject, since }))
        }
      })
    ),

    createAccount: ({ accountId, createdAt, name, requestsPerHour = null, requestsPerMinute = null, tier }) =>
      written(
        Effect.gen(function* () {
          const row = {
            account_id: accountId,
            name,
            tier,
            requests_per_minute: requestsPerMinute,
            requests_per_hour: requestsPerHour,
            created_at: createdAt
          }
          const made = yield* sql`
            insert into accounts ${sql.insert(row)} on conflict (account_id) do nothing returning account_id`
          if (made.length === 0)
            return yield* refuse("accountExists", `another account is called ${accountId}`)
        })
      ),
    changeAccount: (account, { name, requestsPerHour, requestsPerMinute, tier }) =>
      written(
        Effect.gen(function* () {
          yield* has(account)
          const row = {
            ...(name !== undefined && { name }),
            ...(tier !== undefined && { tier }),
            ...(requestsPerMinute !== undefined && { requests_per_minute: requestsPerMinute }),
            ...(requestsPerHour !== undefined && { requests_per_hour: requestsPerHour })
          }
          if (Object.keys(row).length > 0)
            yield* sql`update accounts set ${sql.update(row)} where account_id = ${account}`
        })
      ),

    addKey: (key, replaced) =>
      written(
        Effect.gen(function* () {
          const known = yield* sql`select 1 as one from api_keys where hash = ${key.hash}`
          if (known.length > 0) return yield* refuse("keyExists", "the key was issued before")
          yield* insertKey(key)
          if (replaced === undefined) return
          yield* end(replaced.key, replaced.endsAt)
          yield* Policies.handOver(sql, key.accountId, idOf(replaced.key.hash), idOf(key.hash), key.issuedAt)
        })
      ),
    endKey: (key, endsAt) => written(end(key, endsAt)),
    setScopes: (hash, scopes) =>
      written(
        Effect.gen(function* () {
          const changed = yield* sql`
            update api_keys set scopes = ${scopes.join(" ")} where hash = ${hash} and origin = 'command'
            returning hash`
          if (changed.length === 0) return yield* refuse("unknownKey", "the database has no such key")
        })
      ),

    setNetwork: ({ accountId, chainId, factory, settings }) =>
      written(
        Effect.gen(function* () {
          const chain = chainId.toString()
          yield* has(accountId)
          const [owner] = yield* sql<{ readonly account_id: string }>`
            select account_id from account_networks where chain_id = ${chain} and factory = ${factory}`
          if (owner !== undefined && owner.account_id !== accountId)
            return yield* refuse(
              "factoryTaken",
              `account ${owner.account_id} has the factory ${factory} on chain ${chain}`
            )
          const row = { account_id: accountId, chain_id: chain, factory, settings }
          yield* sql`
            insert into account_networks ${sql.insert(row)}
            on conflict (account_id, chain_id) do update set factory = excluded.factory, settings = excluded.settings`
        })
      ),
    removeNetwork: (account, chainId) =>
      written(
        sql`delete from account_networks where account_id = ${account} and chain_id = ${chainId.toString()}`
      ),
    addSigner: ({ accountId, address, key, provider, ref }) =>
      written(
        Effect.gen(function* () {
          yield* has(accountId)
          const row = {
            account_id: accountId,
            client_id: ref.clientId,
            version_id: ref.versionId ?? null,
            asset_id: ref.assetId ?? null,
            provider,
            key_name: key,
            address
          }
          const made = yield* sql`
            insert into account_signers ${sql.insert(row)} on conflict do nothing returning account_id`
          if (made.length === 0)
            return yield* refuse("signerExists", `account ${accountId} has a signer under this reference`)
        })
      ),
    removeSigner: (account, { assetId = null, clientId, versionId = null }) =>
      written(
        versionId === null
          ? sql`
              delete from account_signers
              where account_id = ${account} and client_id = ${clientId} and asset_id = ${assetId}`
          : sql`
              delete from account_signers
              where account_id = ${account} and client_id = ${clientId} and version_id = ${versionId}`
      ),

    pause: ({ kind, since, subject }) =>
      written(
        sql`insert into pauses ${sql.insert({ kind, subject, since })} on conflict (kind, subject) do nothing`
      ),
    resume: (kind, subject) => written(sql`delete from pauses where kind = ${kind} and subject = ${subject}`),

    noteUses: (uses) =>
      asked(
        inTransaction(
          Effect.forEach(
            // A fixed order prevents deadlocks between processes.
            Store.chunks([...uses].sort(([a], [b]) => (a < b ? -1 : 1))),
            (chunk) => sql`
              insert into api_key_uses ${sql.insert(Arr.map(chunk, ([hash, at]) => ({ hash, used_at: at })))}
              on conflict (hash) do update set used_at = excluded.used_at
              where api_key_uses.used_at < excluded.used_at`,
            { discard: true }
          )
        )
      ),
    uses: asked(
      Effect.map(
        sql<{ readonly hash: string; readonly used_at: number }>`select hash, used_at from api_key_uses`,
        (rows) => new Map(rows.map(({ hash, used_at }) => [hash, used_at]))
      )
    )
  }
})

export const layer: Migrations.StoredLayer<TenantStore> = Layer.effect(TenantStore, make)
