import type { Spec } from "./Spec.js"
import { v06 } from "./V06.js"
import { v07 } from "./V07.js"
import { v08 } from "./V08.js"

/** Everything that differs between versions of the ERC-4337 EntryPoint, by version, oldest first. */
export const EntryPointSpec = { "v0.6": v06, "v0.7": v07, "v0.8": v08 } as const satisfies Readonly<
  Record<string, Spec>
>

/** Version of the EntryPoint contract. */
export type Version = keyof typeof EntryPointSpec

/** The version for bytes that belong to no version. */
export const latest: Spec = v08
