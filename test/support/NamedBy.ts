import type { NamedBy } from "../../src/application/ports/chain/ChainRpc.js"
import type { AccountId } from "../../src/application/ports/Tenants.js"

/** URLs that one account named, and those of another. */
export const acme: NamedBy = { account: "acme" as AccountId }
export const bolt: NamedBy = { account: "bolt" as AccountId }
