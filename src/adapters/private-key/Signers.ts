import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Redacted from "effect/Redacted"
import { SigningKey } from "ethers/crypto"
import type { AccountId } from "../../application/ports/Accounts.js"
import {
  type Signer,
  SignerError,
  type SignerRef,
  Signers,
  SystemSigners
} from "../../application/ports/Signers.js"
import * as Address from "../../domain/evm/Address.js"
import * as Hex from "../../domain/evm/Hex.js"
import * as Keccak from "../../domain/evm/Keccak.js"

/** One key of the registry. Exactly one of `versionId` and `assetId` names it beside its client. */
export interface SignerRecord {
  /** The accounts that may use it: one, unless it is `shared`. */
  readonly accountIds: ReadonlyArray<AccountId>
  readonly clientId: string
  readonly versionId?: string | undefined
  readonly assetId?: string | undefined
  /** 32 bytes in hex, with or without 0x. */
  readonly privateKey: Redacted.Redacted<string>
  /** Lets several accounts reach this key's EOA. For development. */
  readonly shared?: boolean | undefined
}

export interface Registry {
  readonly signers: ReadonlyArray<SignerRecord>
  /** The operator's own; an absent one is `unavailable` when it is asked for. */
  readonly system: {
    readonly deployer?: Redacted.Redacted<string> | undefined
    readonly serviceEoa?: Redacted.Redacted<string> | undefined
  }
}

/**
 * The registry can not be used.
 *
 * - `badKey`: no valid secp256k1 private key
 * - `badReference`: not exactly one of versionId and assetId, an empty name, or no account
 * - `duplicateReference`: one account has two keys under one reference
 * - `sharedEoa`: two accounts reach one EOA and not every record of it is `shared`
 * - `systemKeyReachable`: an account reaches an EOA of the operator's own keys
 * - `systemKeysEqual`: deployer and service EOA are one key
 */
export class RegistryError extends Data.TaggedError("RegistryError")<{
  readonly reason:
    | "badKey"
    | "badReference"
    | "duplicateReference"
    | "sharedEoa"
    | "systemKeyReachable"
    | "systemKeysEqual"
  readonly message: string
}> {}

const keyShape = /^(?:0x)?[0-9a-fA-F]{64}$/

const badKey = (whose: string) =>
  new RegistryError({ reason: "badKey", message: `${whose} has no valid secp256k1 private key` })

/** The last 20 bytes of the hash of the uncompressed point without its prefix byte. */
const addressOf = (publicKey: string): Address.Address =>
  Address.fromWord(Keccak.hash(Hex.unsafe(`0x${publicKey.slice(4)}`)))

const signerOf = (
  whose: string,
  privateKey: Redacted.Redacted<string>
): Effect.Effect<Signer, RegistryError> =>
  Effect.suspend(() => {
    const text = Redacted.value(privateKey)
    if (!keyShape.test(text)) return Effect.fail(badKey(whose))
    return Effect.try({
      try: (): Signer => {
        const key = new SigningKey(text.startsWith("0x") ? text : `0x${text}`)
        return {
          address: addressOf(key.publicKey),
          publicKey: key.publicKey.slice(2),
          type: "PRIVATE_KEY",
          sign: (digest) =>
            Effect.try({
              try: () => Hex.unsafe(key.sign(digest).serialized),
              catch: () => new SignerError({ reason: "refused", message: "the digest is not 32 bytes" })
            })
        }
      },
      // The cause is dropped: it may quote the key.
      catch: () => badKey(whose)
    })
  })

/** JSON, so that no name can look like two. */
const referenceKey = (account: AccountId, kind: "version" | "asset", clientId: string, id: string): string =>
  JSON.stringify([account, kind, clientId, id])

const clientKey = (account: AccountId, clientId: string): string => JSON.stringify([account, clientId])

const nameOf = (record: SignerRecord): string =>
  `signer ${JSON.stringify(record.clientId)} ${
    record.versionId === undefined
      ? `assetId ${JSON.stringify(record.assetId)}`
      : `versionId ${JSON.stringify(record.versionId)}`
  }`

const badReference = (record: SignerRecord): string | undefined => {
  if ((record.versionId === undefined) === (record.assetId === undefined))
    return "needs exactly one of versionId and assetId"
  if (record.clientId === "" || record.versionId === "" || record.assetId === "") return "has an empty name"
  return record.accountIds.length === 0 ? "belongs to no account" : undefined
}

const systemSigners = (system: Registry["system"]) =>
  Effect.gen(function* () {
    const deployer =
      system.deployer === undefined ? null : yield* signerOf("the system key deployer", system.deployer)
    const serviceEoa =
      system.serviceEoa === undefined ? null : yield* signerOf("the system key serviceEoa", system.serviceEoa)
    if (deployer !== null && deployer.address === serviceEoa?.address)
      return yield* new RegistryError({
        reason: "systemKeysEqual",
        message: `deployer and serviceEoa are the same key (${deployer.address})`
      })
    return { deployer, serviceEoa }
  })

/** One EOA, and who reaches it. */
interface Reached {
  readonly accounts: Set<AccountId>
  shared: boolean
}

const notConfigured = (name: string) =>
  Effect.fail(new SignerError({ reason: "unavailable", message: `no system key ${name} is configured` }))

/** Both ports over keys that this process holds in memory. For tests and development. */
export const make = (
  registry: Registry
): Effect.Effect<
  { readonly signers: Signers["Type"]; readonly systemSigners: SystemSigners["Type"] },
  RegistryError
> =>
  Effect.gen(function* () {
    const system = yield* systemSigners(registry.system)
    const clients = new Set<string>()
    const keys = new Map<string, Signer>()
    const reached = new Map<Address.Address, Reached>()
    for (const record of registry.signers) {
      const name = nameOf(record)
      const bad = badReference(record)
      if (bad !== undefined)
        return yield* new RegistryError({ reason: "badReference", message: `${name} ${bad}` })
      const signer = yield* signerOf(name, record.privateKey)
      if (signer.address === system.deployer?.address || signer.address === system.serviceEoa?.address)
        return yield* new RegistryError({
          reason: "systemKeyReachable",
          message: `${name} is a system key (${signer.address})`
        })
      const shared = record.shared === true
      const at = reached.get(signer.address) ?? { accounts: new Set<AccountId>(), shared }
      reached.set(signer.address, at)
      at.shared = at.shared && shared
      const kind = record.versionId === undefined ? "asset" : "version"
      for (const account of new Set(record.accountIds)) {
        at.accounts.add(account)
        clients.add(clientKey(account, record.clientId))
        const reference = referenceKey(
          account,
          kind,
          record.clientId,
          record.versionId ?? record.assetId ?? ""
        )
        if (keys.has(reference))
          return yield* new RegistryError({
            reason: "duplicateReference",
            message: `account ${JSON.stringify(account)} has two keys for ${name}`
          })
        keys.set(reference, signer)
      }
      if (at.accounts.size > 1 && !at.shared)
        return yield* new RegistryError({
          reason: "sharedEoa",
          message: `accounts ${[...at.accounts].map((id) => JSON.stringify(id)).join(", ")} reach one EOA (${signer.address})`
        })
    }

    const find = (account: AccountId, ref: SignerRef): Signer | SignerError["reason"] => {
      if (!clients.has(clientKey(account, ref.clientId))) return "clientIdIncorrect"
      if (ref.assetId !== undefined && ref.versionId === undefined)
        return keys.get(referenceKey(account, "asset", ref.clientId, ref.assetId)) ?? "assetNotSupported"
      if (ref.versionId === undefined || ref.assetId !== undefined) return "versionNotFound"
      return keys.get(referenceKey(account, "version", ref.clientId, ref.versionId)) ?? "versionNotFound"
    }

    return {
      signers: {
        resolve: (account, ref) =>
          Effect.suspend(() => {
            const found = find(account, ref)
            return typeof found === "string"
              ? Effect.fail(new SignerError({ reason: found, message: messages[found] }))
              : Effect.succeed(found)
          })
      },
      systemSigners: {
        deployer: system.deployer === null ? notConfigured("deployer") : Effect.succeed(system.deployer),
        serviceEoa:
          system.serviceEoa === null ? notConfigured("serviceEoa") : Effect.succeed(system.serviceEoa)
      }
    }
  })

const messages: Readonly<Record<SignerError["reason"], string>> = {
  clientIdIncorrect: "invalid client ID: client ID incorrect",
  versionNotFound: "version not found: HSM version does not exist",
  assetNotSupported: "asset not supported: MPC asset unavailable",
  unavailable: "the key provider did not answer",
  refused: "the key provider refused to sign"
}

/** Both ports; a registry that can not be used fails the start. */
export const layer = (registry: Registry): Layer.Layer<Signers | SystemSigners, RegistryError> =>
  Layer.effectContext(
    Effect.map(make(registry), ({ signers, systemSigners }) =>
      Context.make(Signers, signers).pipe(Context.add(SystemSigners, systemSigners))
    )
  )
