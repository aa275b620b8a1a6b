/** Responsible entity for a part of the validation. */
export type Entity = "factory" | "account" | "paymaster"

export const entities = ["factory", "account", "paymaster"] as const satisfies ReadonlyArray<Entity>

/** A breach in an op's validation, forbidden by ERC-7562 to unstaked entities or to all entities. */
export interface Finding {
  readonly entity: Entity
  readonly rule: string
  /** The instruction, or whose storage or code. */
  readonly what: string
  /** A stake of this entity makes it allowed; null: no stake does. */
  readonly allowedByStakeOf: Entity | null
}

/** Facts of an op and its chain for the rules. Addresses are lower case. */
export interface Scope {
  readonly entryPoint: string
  readonly senderCreator: string
  readonly sender: string
  readonly factory: string | null
  readonly paymaster: string | null
  readonly hasCode: (address: string) => boolean
  /** Whether the chain has the P-256 precompile of RIP-7212. */
  readonly p256: boolean
  /** Names of contracts, for findings. */
  readonly name: (address: string) => string
}

export const addressOf = (scope: Scope, entity: Entity): string | null =>
  entity === "account" ? scope.sender : scope[entity]
