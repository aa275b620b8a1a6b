import * as Effect from "effect/Effect"
import type * as Redacted from "effect/Redacted"
import * as PrivateKeys from "../../../src/adapters/keys/PrivateKeys.js"
import * as KeyRing from "../../../src/application/keys/KeyRing.js"
import {
  type Registry,
  type SignerRecord,
  type SystemRole,
  systemRoles
} from "../../../src/application/keys/KeyRingRegistry.js"

export interface Keys {
  readonly signers: ReadonlyArray<
    Omit<SignerRecord, "source"> & { readonly privateKey: Redacted.Redacted<string> }
  >
  readonly system: { readonly [role in SystemRole]?: Redacted.Redacted<string> }
}

/** A key ring registry over private keys: signers' keys are named by index, system keys by role. */
export const registry = ({ signers, system }: Keys): Registry => {
  const source = (key: string) => ({ provider: "private keys", key })
  const keys = Object.fromEntries([
    ...signers.map(({ privateKey }, index) => [`${index}`, privateKey] as const),
    ...systemRoles.flatMap((role) => {
      const key = system[role]
      return key === undefined ? [] : [[role, key] as const]
    })
  ])
  return {
    providers: { "private keys": { open: PrivateKeys.make({ keys }) } },
    signers: signers.map(({ privateKey: _, ...record }, index) => ({
      ...record,
      source: source(`${index}`)
    })),
    system: Object.fromEntries(
      systemRoles.flatMap((role) => (system[role] === undefined ? [] : [[role, source(role)]]))
    )
  }
}

export const make = (keys: Keys) => Effect.suspend(() => KeyRing.make(registry(keys)))

export const layer = (keys: Keys) => KeyRing.layer(registry(keys))
