import * as Address from "../../primitives/Address.js"
import * as Hex from "../../primitives/Hex.js"
import * as Packed from "./Packed.js"
import * as PackedHash from "./PackedHash.js"
import type { Spec } from "./Spec.js"

/** EntryPoint v0.7: the packed op under the hash of v0.6. */
export const v07: Spec = {
  address: Address.unsafe("0x0000000071727De22E5E9d8BAf0edAc6f37da032"),
  deploymentSalt: Hex.unsafe32("0x90d8084deab30c2a37c45e8d47f49f2f7965183cb6990a98943ef94940681de3"),
  layout: Packed.layout,
  functions: Packed.functions,
  hash: PackedHash.hash,
  objection: Packed.objection,
  hasBegun: (validAfter, timestamp) => timestamp >= validAfter,
  paymaster: Packed.paymaster,
  gas: { ...Packed.gas, verification: 1_000n, unmetered: { perOp: 7_400n, perBundle: 12_500n } },
  rpc: Packed.rpc
}
