import * as Fault from "./Fault.js"
import * as Random from "./Random.js"

export type Kill =
  /** At the `nth` call of this method of the journal; null: of any method. */
  | {
      readonly at: "journal"
      readonly step: string | null
      readonly moment: "before" | "after"
      readonly nth: number
      /** A life that has not reached the place ends then, in ms; null: it does not. */
      readonly atLatest: number | null
    }
  /** Before the `nth` SQL statement that contains the text. */
  | {
      readonly at: "statement"
      readonly text: string
      readonly nth: number
      readonly atLatest: number | null
    }
  /** When its `nth` transaction reaches the node, or has been taken by it. */
  | { readonly at: "send"; readonly moment: "before" | "after"; readonly nth: number }
  | { readonly at: "clock"; readonly millis: number }

export type Mining =
  | { readonly mode: "automine" }
  | { readonly mode: "steady"; readonly millis: number }
  | { readonly mode: "interval"; readonly seconds: number }

export type Deed = "hit" | "hitAndRevert" | "hitIfOpen"

export interface OpPlan {
  readonly wallet: number
  readonly deed: Deed
  /** Index of the operation in the request that must succeed first; left out: none. */
  readonly dependsOn?: number | null
}

export interface RequestPlan {
  /** Milliseconds after the storm began. */
  readonly at: number
  readonly endpoint: "execute" | "executeEncoded" | "create" | "transactSigner"
  readonly signer: number
  /** For create: as many new wallets as there are ops. */
  readonly ops: ReadonlyArray<OpPlan>
  /** Milliseconds until the client hangs up and repeats the request. */
  readonly patience: number
  /** Its client does not wait for the answer, but looks the request up; the second one waits. */
  readonly isAsync: boolean
  /** A second client sends the same request with the same key at the same time. */
  readonly twin: boolean
}

/** Further events on the chain. */
export type Event = { readonly at: number } & (
  | {
      /**
       * A foreign transaction with the signer's key: `next` takes the nonce that the chain expects next, `race` a
       * pending one.
       */
      readonly kind: "foreign transaction"
      readonly signer: number
      readonly nonce: "next" | "race"
    }
  | { readonly kind: "reorg"; readonly depth: number; readonly returned: boolean }
  | { readonly kind: "fee spike"; readonly gwei: number; readonly millis: number }
  | { readonly kind: "dropped transactions" }
  | { readonly kind: "empty block" }
  | { readonly kind: "gate"; readonly closed: boolean }
)

/** Further acts of tenants: they replace waiting transactions immediately, or cancel every second open request. */
export interface Impulse {
  readonly at: number
  readonly signer: number
  readonly what: "unstick" | "cancel"
}

/** The database is away for a while: it is locked, refuses connections, or accepts them and hangs. */
export interface Outage {
  readonly at: number
  readonly how: "locked" | "refuses" | "hangs"
  readonly millis: number
}

/** All choices that one seed makes. */
export interface Scenario {
  readonly seed: number
  readonly signers: number
  readonly wallets: number
  readonly mining: Mining
  readonly confirmations: number
  /**
   * Deeper than any reorg except ones that restore every transaction. Answers from smaller depths may change until
   * then.
   */
  readonly settledDepth: number
  /** Time until a waiting transaction is replaced at a higher price. */
  readonly bumpAfterMillis: number
  /** Time that a request waits for its transaction before `outcome_unknown`. */
  readonly receiptTimeoutMillis: number
  readonly requests: ReadonlyArray<RequestPlan>
  readonly script: Fault.Script
  /** One per life of the process; lives after the last are not killed. */
  readonly kills: ReadonlyArray<Kill>
  readonly store: "sqlite" | "postgres"
  /** Processes that share the journal; those after the first end by these kills. */
  readonly others: ReadonlyArray<ReadonlyArray<Kill>>
  readonly outages: ReadonlyArray<Outage>
  readonly version: "v0.6" | "v0.7" | "v0.8"
  /** Whether an external bundler takes the ops. */
  readonly remote: boolean
  /** Time when the operator's node is replaced permanently by another one; null: never. */
  readonly nodeReplacedAt: number | null
  readonly events: ReadonlyArray<Event>
  readonly impulses: ReadonlyArray<Impulse>
  readonly stormMillis: number
}

/** Longest reorg that a settled transaction survives. */
const reorgDepth = 2

const mining = (random: Random.Random): Mining => {
  const die = random.int(1, 10)
  if (die <= 4) return { mode: "automine" }
  return die <= 9 ? { mode: "steady", millis: random.int(60, 300) } : { mode: "interval", seconds: 1 }
}

const ops = (random: Random.Random, signers: number, wallets: number, signer: number, count: number) =>
  Array.from({ length: count }, (): OpPlan => {
    // Wallet `w` belongs to signer `w mod signers`.
    const own = Math.ceil((wallets - signer) / signers)
    const deed = random.pick<Deed>(["hit", "hit", "hit", "hit", "hitIfOpen", "hitAndRevert"])
    return { wallet: signer + signers * random.int(0, own - 1), deed }
  })

/**
 * A third of the operations depend on their neighbour, all of a request in the same direction, so that no cycle arises.
 */
const linked = (random: Random.Random, plans: ReadonlyArray<OpPlan>): ReadonlyArray<OpPlan> => {
  const way = random.pick([-1, 1])
  return plans.map((plan, place) => {
    const on = place + way
    return { ...plan, dependsOn: random.chance(1 / 3) && plans[on] !== undefined ? on : null }
  })
}

const requests = (random: Random.Random, signers: number, wallets: number, stormMillis: number) =>
  Array.from({ length: random.int(4, 10) }, (_, index): RequestPlan => {
    const endpoint = random.pick([
      "execute",
      "execute",
      "execute",
      "executeEncoded",
      "create",
      "transactSigner"
    ] as const)
    const signer = random.int(0, signers - 1)
    const most = { execute: 5, executeEncoded: 3, create: 2, transactSigner: 1 }[endpoint]
    return {
      at: random.int(0, Math.floor(stormMillis / 2)),
      endpoint,
      signer,
      ops:
        endpoint === "create"
          ? ops(random, signers, wallets, signer, random.int(1, most))
          : linked(
              random.fork(`dependencies ${index}`),
              ops(random, signers, wallets, signer, random.int(1, most))
            ),
      isAsync: random.fork(`async ${index}`).chance(0.4),
      patience: random.chance(0.25) ? random.int(200, 1_500) : 20_000,
      twin: random.chance(0.2)
    }
  })

/** The same order for all seeds, so that a few of them already cover every kind of step. */
const shuffled = <A>(list: ReadonlyArray<A>): ReadonlyArray<A> => {
  const random = Random.make("order of steps")
  return list
    .map((value) => ({ value, rank: random.int(0, 1_000_000) }))
    .sort((one, other) => one.rank - other.rank)
    .map(({ value }) => value)
}

const kills = (random: Random.Random, seed: number, steps: ReadonlyArray<string>): ReadonlyArray<Kill> => {
  const moment = () => random.pick(["before", "after"] as const)
  const any = (): Kill => {
    switch (random.int(1, 4)) {
      case 1:
        return { at: "clock", millis: random.int(50, 2_000) }
      case 2:
        return { at: "send", moment: moment(), nth: random.int(1, 4) }
      default:
        return { at: "journal", step: null, moment: moment(), nth: random.int(1, 40), atLatest: null }
    }
  }
  // Seeds in a row go through every step of the journal, before and after it, and both sides of sending.
  const spots = shuffled(
    [...steps, null].flatMap((step) => [
      { step, moment: "before" as const },
      { step, moment: "after" as const }
    ])
  )
  const { moment: at, step } = spots[seed % spots.length] ?? { step: null, moment: "before" }
  const nth = random.int(1, 3)
  const first: Kill =
    step === null
      ? { at: "send", moment: at, nth }
      : { at: "journal", step, moment: at, nth, atLatest: random.int(1_500, 4_000) }
  return [first, ...Array.from({ length: random.int(0, 3) }, any)]
}

/** The service's surroundings: database, node, bundler, EntryPoint. */
const surroundings = (random: Random.Random, stormMillis: number, reorgs: boolean) => {
  const store = random.chance(0.3) ? ("postgres" as const) : ("sqlite" as const)
  const remote = !reorgs && random.chance(0.15)
  const at = () => random.int(0, stormMillis)
  const outage = (): Outage => ({
    at: at(),
    how: store === "sqlite" ? "locked" : random.pick(["refuses", "hangs"] as const),
    millis: random.int(200, 2_500)
  })
  return {
    store,
    remote,
    others:
      store === "postgres" && random.chance(0.6)
        ? [random.chance(0.5) ? [{ at: "clock" as const, millis: random.int(50, 3_000) }] : []]
        : [],
    outages: random.chance(0.4) ? [outage()] : [],
    version: remote ? ("v0.7" as const) : random.pick(["v0.6", "v0.7", "v0.7", "v0.8"] as const),
    nodeReplacedAt: random.chance(0.25) ? at() : null
  }
}

/** One reorg deeper than the settled depth: its transactions are mined again, whatever was answered before. */
const deep = (random: Random.Random, stormMillis: number): ReadonlyArray<Event> => [
  {
    at: random.int(0, stormMillis),
    kind: "reorg",
    depth: reorgDepth + 1 + random.int(1, 5),
    returned: true
  }
]

const events = (
  random: Random.Random,
  signers: number,
  stormMillis: number,
  reorgs: boolean
): ReadonlyArray<Event> => {
  const event = (): Event => {
    const at = random.int(0, stormMillis)
    switch (random.pick(["foreign", "foreign", "reorg", "spike", "dropped", "empty", "gate", "gate"])) {
      case "foreign":
        return {
          at,
          kind: "foreign transaction",
          signer: random.int(0, signers - 1),
          nonce: random.pick(["next", "race"] as const)
        }
      case "reorg":
        return reorgs
          ? { at, kind: "reorg", depth: random.int(1, reorgDepth), returned: random.chance(0.5) }
          : { at, kind: "empty block" }
      case "spike":
        return { at, kind: "fee spike", gwei: random.int(3, 60), millis: random.int(200, 1_200) }
      case "dropped":
        return { at, kind: "dropped transactions" }
      case "empty":
        return { at, kind: "empty block" }
      default:
        return { at, kind: "gate", closed: random.chance(0.5) }
    }
  }
  return Array.from({ length: random.int(0, 7) }, event).sort((one, other) => one.at - other.at)
}

const impulses = (random: Random.Random, signers: number, stormMillis: number): ReadonlyArray<Impulse> =>
  random.chance(0.6)
    ? Array.from({ length: random.int(1, 6) }, () => ({
        at: random.int(0, stormMillis),
        signer: random.int(0, signers - 1),
        what: random.pick(["unstick", "cancel"] as const)
      }))
    : []

/** A remote bundler's transactions have no replacement, so they must reach the chain. */
const harmless = ({ kind }: Event): boolean => kind === "gate" || kind === "foreign transaction"

/** The scenario of a seed; `steps` are the methods of the journal. */
export const make = (seed: number, steps: ReadonlyArray<string>): Scenario => {
  const random = Random.make(`castellan ${seed}`)
  const signers = random.int(1, 3)
  const wallets = random.int(signers, 5)
  const stormMillis = random.int(1_200, 3_000)
  const chain = mining(random.fork("mining"))
  const reorgs = chain.mode !== "automine" && random.chance(0.5)
  const around = surroundings(random.fork("surroundings"), stormMillis, reorgs)
  const isDeep = reorgs && random.fork("deep").chance(0.3)
  const planned = requests(random.fork("requests"), signers, wallets, stormMillis)
  return {
    seed,
    signers,
    wallets,
    mining: chain,
    confirmations: reorgs && random.chance(0.5) ? reorgDepth + 1 : 1,
    settledDepth: reorgs ? reorgDepth + 1 : 1,
    bumpAfterMillis: random.int(500, 3_000),
    // Another process takes over a dead process's lanes after ten seconds: accepted requests must wait for that.
    receiptTimeoutMillis: random.int(1_000, 3_000) + (around.store === "postgres" ? 12_000 : 0),
    // A transaction mined again after a deep reorg has the same outcome only without other dependencies.
    requests: isDeep
      ? planned.map((plan) => ({
          ...plan,
          ops: plan.ops.map((op) => ({ ...op, deed: op.deed === "hitIfOpen" ? ("hit" as const) : op.deed }))
        }))
      : planned,
    script: Fault.script(random.fork("faults"), random.int(5, 60) / 100, random.chance(0.08)),
    kills: kills(random.fork("kills"), seed, steps),
    ...around,
    events: isDeep
      ? deep(random.fork("deep reorg"), stormMillis)
      : events(random.fork("events"), signers, stormMillis, reorgs).filter(
          (event) => !around.remote || harmless(event)
        ),
    impulses: impulses(random.fork("impulses"), signers, stormMillis),
    stormMillis
  }
}
