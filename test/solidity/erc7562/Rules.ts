import { keccak256 } from "ethers"
import type { Entity, Finding, Scope } from "./Scope.js"
import { type Access, associations, storageBreach } from "./Storage.js"
import type { Event } from "./Trace.js"

/** All checked rules. STO-010, STO-021 and OP-051 to OP-053 are permissions; other rules forbid the rest. */
export const checkedRules = [
  "OP-011",
  "OP-012",
  "OP-013",
  "OP-020",
  "OP-031",
  "OP-041",
  "OP-054",
  "OP-061",
  "OP-062",
  "OP-080",
  "STO-022",
  "STO-031",
  "STO-032",
  "STO-033"
] as const

const blocked = new Set([
  "ORIGIN",
  "GASPRICE",
  "BLOCKHASH",
  "COINBASE",
  "TIMESTAMP",
  "NUMBER",
  "PREVRANDAO",
  "DIFFICULTY",
  "GASLIMIT",
  "BASEFEE",
  "CREATE",
  "INVALID",
  "SELFDESTRUCT"
])

const calls = new Set(["CALL", "CALLCODE", "DELEGATECALL", "STATICCALL"])
const codeReads = new Set(["EXTCODESIZE", "EXTCODEHASH", "EXTCODECOPY"])
const storage: Readonly<Record<string, Access>> = {
  SLOAD: { writes: false, transient: false },
  SSTORE: { writes: true, transient: false },
  TLOAD: { writes: false, transient: true },
  TSTORE: { writes: true, transient: true }
}

const depositTo = "0xb760faf9"
const p256 = 0x100n
/** The tracer's name of an instruction that the chain does not know. */
const unassigned = /not defined|^opcode|UNKNOWN/

const toAddress = (word: string): string =>
  `0x${(BigInt(word) & ((1n << 160n) - 1n)).toString(16).padStart(40, "0")}`

type Step = Extract<Event, { kind: "step" }>
type Enter = Extract<Event, { kind: "enter" }>

/** One validation phase being read. */
interface Phase {
  readonly entity: Entity
  readonly creations: { count: number }
  readonly add: (rule: string, what: string, allowedByStakeOf?: Entity) => void
}

interface Breach {
  readonly rule: string
  readonly what: string
}

/** Pays for the sender: the EntryPoint's fallback, or its depositTo (OP-052, OP-053). */
const deposits = (scope: Scope, called: Enter): boolean => {
  if (called.type !== "CALL") return false
  if (called.size === 0) return called.from === scope.sender
  const forSender = called.input.startsWith(depositTo) && `0x${called.input.slice(34, 74)}` === scope.sender
  return forSender && (called.from === scope.sender || called.from === scope.factory)
}

/** The breach by use of an address's code; `called` is the call, or null for EXTCODE*. */
const targetBreach = (scope: Scope, entity: Entity, target: string, called: Enter | null): Breach | null => {
  const number = BigInt(target)
  if ((number > 0n && number <= 9n) || (number === p256 && scope.p256)) return null
  if (number > 0n && number < p256) return { rule: "OP-062", what: `precompile ${number}` }
  if (target === scope.entryPoint)
    return called !== null && deposits(scope, called) ? null : { rule: "OP-054", what: "EntryPoint" }
  if ((target === scope.sender && entity === "factory") || scope.hasCode(target)) return null
  return { rule: "OP-041", what: number === p256 ? "P-256 precompile" : scope.name(target) }
}

const checkStep = (
  scope: Scope,
  phase: Phase,
  step: Step,
  following: Event | undefined,
  associated: ReturnType<typeof associations>
): void => {
  const { add, entity } = phase
  const entered = following?.kind === "enter" ? following : null
  const access = storage[step.op]
  if (blocked.has(step.op)) add("OP-011", step.op)
  else if (unassigned.test(step.op)) add("OP-013", step.op)
  else if (step.op === "GAS" && !calls.has(step.next ?? "")) add("OP-012", `GAS ${step.next}`)
  else if (step.op === "BALANCE" || step.op === "SELFBALANCE") add("OP-080", step.op, entity)
  else if (step.op === "CREATE2") {
    phase.creations.count += 1
    if (entity !== "factory" || phase.creations.count > 1 || entered?.to !== scope.sender)
      add("OP-031", "CREATE2")
  } else if (codeReads.has(step.op)) {
    const target = toAddress(step.args[0] ?? "0x0")
    const emptiness = step.op === "EXTCODESIZE" && step.next === "ISZERO" && target === scope.entryPoint
    const breach = emptiness ? null : targetBreach(scope, entity, target, null)
    if (breach !== null) add(breach.rule, breach.what)
  } else if (calls.has(step.op)) {
    const target = toAddress(step.args[1] ?? "0x0")
    const value = step.op === "CALL" || step.op === "CALLCODE" ? BigInt(step.args[2] ?? "0x0") : 0n
    if (value > 0n && target !== scope.entryPoint) add("OP-061", step.op)
    const breach = targetBreach(scope, entity, target, entered)
    if (breach !== null) add(breach.rule, breach.what)
  } else if (access !== undefined) {
    const breach = storageBreach(
      scope,
      entity,
      step.address,
      BigInt(step.args[0] ?? "0x0"),
      access,
      associated
    )
    if (breach !== null) add(breach.rule, breach.what, breach.allowedByStakeOf ?? undefined)
  }
}

const entityOf = (scope: Scope, { from, to }: Enter): Entity | "execution" | null => {
  if (from !== scope.entryPoint) return null
  if (to === scope.senderCreator) return "factory"
  if (to === scope.sender) return "account"
  if (to === scope.paymaster) return "paymaster"
  return to === scope.entryPoint ? "execution" : null
}

/** Reads the validation phases of a trace of `handleOps` with one op, and returns each breach once. */
export const findings = (events: ReadonlyArray<Event>, scope: Scope): ReadonlyArray<Finding> => {
  const found = new Map<string, Finding>()
  const associated = associations(
    events.flatMap((event) => (event.kind === "step" && event.preimage !== null ? [event.preimage] : [])),
    keccak256
  )
  let phase: Phase | null = null
  let depth = 0
  let phaseDepth = 0
  for (const [index, event] of events.entries()) {
    if (event.kind === "enter") {
      depth += 1
      const entity: Entity | "execution" | null = phase === null ? entityOf(scope, event) : null
      if (entity === "execution") break
      if (entity !== null) {
        phaseDepth = depth
        phase = {
          entity,
          creations: { count: 0 },
          add: (rule, what, allowedByStakeOf) => {
            const finding = { entity, rule, what, allowedByStakeOf: allowedByStakeOf ?? null }
            found.set(JSON.stringify(finding), finding)
          }
        }
      }
    } else if (event.kind === "exit") {
      if (phase !== null && /out of gas/i.test(event.error ?? "")) phase.add("OP-020", "out of gas")
      if (depth === phaseDepth) phase = null
      depth -= 1
    } else if (phase !== null && event.address !== scope.entryPoint && event.address !== scope.senderCreator)
      checkStep(scope, phase, event, events[index + 1], associated)
  }
  return [...found.values()]
}

/** Findings that remain when these entities are staked. */
export const breaches = (
  all: ReadonlyArray<Finding>,
  staked: ReadonlyArray<Entity>
): ReadonlyArray<Finding> =>
  all.filter(({ allowedByStakeOf }) => allowedByStakeOf === null || !staked.includes(allowedByStakeOf))
