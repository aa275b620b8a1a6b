import { createRequire } from "node:module"
import { Worker } from "node:worker_threads"
import * as Effect from "effect/Effect"
import * as TokenFailure from "./TokenFailure.js"

/** Handle of a slot, a session or an object, as the library's bytes. */
export type Handle = Uint8Array

export interface Attribute {
  readonly type: number
  readonly value?: number | boolean | string | Uint8Array
}

interface Mechanism {
  readonly mechanism: number
}

/** The used part of the binding. */
export interface Calls {
  readonly load: (path: string) => void
  readonly C_Initialize: (options: { readonly flags: number }) => void
  readonly C_Finalize: () => void
  readonly C_GetSlotList: (tokenPresent: boolean) => ReadonlyArray<Handle>
  readonly C_GetTokenInfo: (slot: Handle) => { readonly label: string; readonly flags: number }
  readonly C_OpenSession: (slot: Handle, flags: number) => Handle
  readonly C_CloseSession: (session: Handle) => void
  readonly C_GetSessionInfo: (session: Handle) => { readonly state: number }
  readonly C_Login: (session: Handle, userType: number, pin: string) => void
  readonly C_FindObjectsInit: (session: Handle, template: ReadonlyArray<Attribute>) => void
  readonly C_FindObjects: (session: Handle, most: number) => ReadonlyArray<Handle>
  readonly C_FindObjectsFinal: (session: Handle) => void
  readonly C_GetAttributeValue: (
    session: Handle,
    object: Handle,
    template: ReadonlyArray<Attribute>
  ) => ReadonlyArray<{ readonly value?: Uint8Array }>
  readonly C_SignInit: (session: Handle, mechanism: Mechanism, key: Handle) => void
  readonly C_SignAsync: (session: Handle, data: Uint8Array, out: Uint8Array) => Uint8Array
  readonly C_GenerateKeyPairAsync: (
    session: Handle,
    mechanism: Mechanism,
    publicKey: ReadonlyArray<Attribute>,
    privateKey: ReadonlyArray<Attribute>
  ) => { readonly publicKey: Handle; readonly privateKey: Handle }
}

/** A PKCS #11 library, called in a worker thread. */
export interface Library {
  readonly call: <M extends keyof Calls>(
    method: M,
    ...args: Parameters<Calls[M]>
  ) => Effect.Effect<ReturnType<Calls[M]>, TokenFailure.Refusal>
  /** Number of running calls, including abandoned ones. */
  readonly running: () => number
  /** Waits until no call is running. */
  readonly idle: Effect.Effect<void>
  /** Ends the thread. Call it only when idle: it waits for a running call. */
  readonly close: Effect.Effect<void>
}

/**
 * The worker's program. Most functions of the binding are synchronous, and an HSM may be far away: in the worker they block
 * only each other. Functions ending in Async run concurrently in Node's thread pool. The binding does not protect their
 * buffers from garbage collection, so the worker holds the arguments until they end.
 */
const program = `
const { parentPort, workerData } = require("node:worker_threads")
const { PKCS11 } = require(workerData.binding)
const library = new PKCS11()
const held = new Map()
parentPort.on("message", async ({ id, method, args }) => {
  held.set(id, args)
  try {
    parentPort.postMessage({ id, value: await library[method](...args) })
  } catch (error) {
    parentPort.postMessage({ id, failed: String(error && error.message), code: error && error.code })
  } finally {
    held.delete(id)
  }
})
`

interface Answer {
  readonly id: number
  readonly value?: unknown
  readonly failed?: string
  readonly code?: unknown
}

const binding = createRequire(import.meta.url).resolve("pkcs11js")

const gone = new TokenFailure.Refusal({ name: "CKR_CRYPTOKI_NOT_INITIALIZED" })

/** Starts the thread; it loads nothing yet. */
export const start = (): Library => {
  const worker = new Worker(program, { eval: true, execArgv: [], workerData: { binding } })
  const asked = new Map<number, (answer: Effect.Effect<unknown, TokenFailure.Refusal>) => void>()
  const waiting = new Set<() => void>()
  let last = 0
  let ended = false

  const settle = (id: number, answer: Effect.Effect<unknown, TokenFailure.Refusal>) => {
    const resume = asked.get(id)
    asked.delete(id)
    resume?.(answer)
    if (asked.size > 0) return
    for (const wake of waiting) wake()
    waiting.clear()
  }
  const end = () => {
    ended = true
    for (const id of [...asked.keys()]) settle(id, Effect.fail(gone))
  }
  worker.on("message", ({ code, failed, id, value }: Answer) =>
    settle(id, failed === undefined ? Effect.succeed(value) : TokenFailure.refusal(failed, code))
  )
  worker.on("error", end)
  worker.on("exit", end)

  return {
    call: <M extends keyof Calls>(method: M, ...args: Parameters<Calls[M]>) =>
      Effect.map(
        Effect.callback<unknown, TokenFailure.Refusal>((resume) => {
          if (ended) return resume(Effect.fail(gone))
          last += 1
          asked.set(last, resume)
          worker.postMessage({ id: last, method, args })
        }),
        (value) => value as ReturnType<Calls[M]>
      ),
    running: () => asked.size,
    idle: Effect.callback<void>((resume) => {
      if (asked.size === 0) resume(Effect.void)
      else waiting.add(() => resume(Effect.void))
    }),
    close: Effect.suspend(() => {
      ended = true
      return Effect.ignore(Effect.tryPromise(() => worker.terminate()))
    })
  }
}
