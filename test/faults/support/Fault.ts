import type { Random } from "./Random.js"

/** Faults that a node may apply to one HTTP exchange. */
export type Fault =
  | { readonly kind: "delay"; readonly millis: number }
  /** The connection ends before the node has received any byte. */
  | { readonly kind: "cut before" }
  /** The node has processed the call; its reply is lost. */
  | { readonly kind: "cut after" }
  /** The node has processed the call and never replies. */
  | { readonly kind: "silence" }
  /** This exchange and those after it, `burst` in all. */
  | { readonly kind: "429"; readonly burst: number; readonly retryAfter: number | null }
  | { readonly kind: "gateway"; readonly status: 502 | 503 | 504 }
  | { readonly kind: "garbage" }
  /** An error instead of the reply, whether or not the node has processed the call. */
  | {
      readonly kind: "wrong error"
      readonly forwarded: boolean
      readonly code: number
      readonly message: string
    }
  | { readonly kind: "duplicated answer" }
  | { readonly kind: "reordered answers" }
  | { readonly kind: "left out answer" }
  /** For this many exchanges the node lags by `blocks`. */
  | { readonly kind: "stale"; readonly exchanges: number; readonly blocks: number }

/** Subject of an exchange: sending transactions, polling transactions, or reading. */
export const streams = ["send", "poll", "read"] as const
export type Stream = (typeof streams)[number]

/** By stream: the fault of each exchange in order, null where the node is honest. After the end it is honest. */
export type Script = Readonly<Record<Stream, ReadonlyArray<Fault | null>>>

/** Nodes' replies to a transaction, true or not; codes and messages as seen in the wild. */
const sendErrors = [
  { code: -32000, message: "already known" },
  { code: -32003, message: "transaction already imported" },
  { code: -32603, message: "nonce too low" },
  { code: -32000, message: "nonce too low: next nonce 7, tx nonce 6" },
  { code: -32010, message: "OldNonce, Current nonce: 8, nonce of rejected tx: 7" },
  { code: -32000, message: "replacement transaction underpriced" },
  { code: -32000, message: "transaction underpriced: tip needed 25000000000, tip permitted 1" },
  { code: -32000, message: "txpool is full" },
  { code: -32603, message: "internal error" },
  { code: -32099, message: "the sequencer is having a moment" }
]

const readErrors = [
  { code: -32000, message: "header not found" },
  { code: -32603, message: "internal error" },
  { code: -32001, message: "resource not found" }
]

const draw: Readonly<Record<Fault["kind"], (random: Random, stream: Stream) => Fault>> = {
  delay: (random) => ({ kind: "delay", millis: random.int(30, 400) }),
  "cut before": () => ({ kind: "cut before" }),
  "cut after": () => ({ kind: "cut after" }),
  silence: () => ({ kind: "silence" }),
  "429": (random) => ({ kind: "429", burst: random.int(1, 12), retryAfter: random.pick([null, null, 0, 1]) }),
  gateway: (random) => ({ kind: "gateway", status: random.pick([502, 503, 504] as const) }),
  garbage: () => ({ kind: "garbage" }),
  "wrong error": (random, stream) => ({
    kind: "wrong error",
    forwarded: random.chance(0.5),
    ...random.pick(stream === "send" ? sendErrors : readErrors)
  }),
  "duplicated answer": () => ({ kind: "duplicated answer" }),
  "reordered answers": () => ({ kind: "reordered answers" }),
  "left out answer": () => ({ kind: "left out answer" }),
  stale: (random) => ({ kind: "stale", exchanges: random.int(2, 15), blocks: random.int(1, 3) })
}

/** Faults per stream; a repeated fault is more likely. */
const menu: Readonly<Record<Stream, ReadonlyArray<Fault["kind"]>>> = {
  send: [
    "cut before",
    "cut after",
    "cut after",
    "wrong error",
    "wrong error",
    "wrong error",
    "delay",
    "429",
    "gateway",
    "garbage",
    "stale"
  ],
  poll: [
    "delay",
    "cut before",
    "cut after",
    "429",
    "gateway",
    "wrong error",
    "duplicated answer",
    "reordered answers",
    "left out answer",
    "stale",
    "stale"
  ],
  read: [
    "delay",
    "cut before",
    "cut after",
    "429",
    "429",
    "gateway",
    "garbage",
    "wrong error",
    "duplicated answer",
    "reordered answers",
    "left out answer",
    "stale"
  ]
}

/** Longest script of each stream, in exchanges. */
const reach: Readonly<Record<Stream, number>> = { send: 14, poll: 60, read: 40 }

/** The faults of one run: `density` is the share of exchanges that meet one. */
export const script = (random: Random, density: number, silence: boolean): Script => {
  const of = (stream: Stream): ReadonlyArray<Fault | null> => {
    const own = random.fork(stream)
    const share = stream === "send" ? Math.min(0.8, density * 2) : density
    return Array.from({ length: reach[stream] }, () =>
      own.chance(share) ? draw[own.pick(menu[stream])](own, stream) : null
    )
  }
  const send = [...of("send")]
  if (silence) send[random.int(0, 3)] = { kind: "silence" }
  return { send, poll: of("poll"), read: of("read") }
}

export const none: Script = { send: [], poll: [], read: [] }
