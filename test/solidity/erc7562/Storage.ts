import { addressOf, type Entity, entities, type Finding, type Scope } from "./Scope.js"

/** How an instruction uses a slot. Transient storage is treated as storage (OP-070). */
export interface Access {
  readonly writes: boolean
  readonly transient: boolean
}

/** Largest offset from keccak256(address ++ x) at which a slot is associated with the address. */
const span = 128n

/** The address that a slot is associated with, by the preimages of the trace: keccak256(address ++ x) + n. */
export const associations = (
  preimages: ReadonlyArray<string>,
  hash: (bytes: string) => string
): ((slot: bigint, address: string) => boolean) => {
  const bases = new Map<string, Set<bigint>>()
  for (const preimage of preimages) {
    if (!preimage.startsWith(`0x${"0".repeat(24)}`)) continue
    const address = `0x${preimage.slice(26, 66)}`
    bases.set(address, (bases.get(address) ?? new Set()).add(BigInt(hash(preimage))))
  }
  return (slot, address) =>
    slot === BigInt(address) ||
    [...(bases.get(address) ?? [])].some((base) => slot >= base && slot <= base + span)
}

/** The storage rules: the breach by an access of an entity's code to a contract's slot, or null. */
export const storageBreach = (
  scope: Scope,
  entity: Entity,
  owner: string,
  slot: bigint,
  access: Access,
  associated: (slot: bigint, address: string) => boolean
): Omit<Finding, "entity"> | null => {
  const kind = `${access.transient ? "transient " : ""}storage`
  const of = (address: string) => `${kind} of ${scope.name(address)}`
  if (owner === scope.sender) return null
  const own = addressOf(scope, entity)
  const ownerIsEntity = entities.some((each) => addressOf(scope, each) === owner)
  if (owner === own) return { rule: "STO-031", what: `own ${kind}`, allowedByStakeOf: entity }
  if (ownerIsEntity) return { rule: "STO-010", what: of(owner), allowedByStakeOf: null }
  if (associated(slot, scope.sender))
    return scope.factory === null
      ? null
      : { rule: "STO-022", what: `the account's ${of(owner)}`, allowedByStakeOf: "factory" }
  if (own !== null && associated(slot, own))
    return { rule: "STO-032", what: `its ${of(owner)}`, allowedByStakeOf: entity }
  return access.writes
    ? { rule: "STO-010", what: `writing ${of(owner)}`, allowedByStakeOf: null }
    : { rule: "STO-033", what: of(owner), allowedByStakeOf: entity }
}
