import { setImmediate as turn } from "node:timers/promises"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import Agent from "undici/lib/dispatcher/agent.js"

/** Most bytes of a response: a public key or a signature has a few hundred. */
const largestAnswer = 256 * 1_024

/** Statuses without a body. */
const bodiless: ReadonlySet<number> = new Set([204, 205, 304])

/**
 * `fetch` for the SDK, over connections that end with the scope; the SDK's own outlive every client. One time-out covers
 * the start to the last byte; redirects are not followed.
 */
export const make = (timeoutMillis: number): Effect.Effect<typeof fetch, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new Agent({ maxResponseSize: largestAnswer })),
      (agent) => Effect.promise(() => agent.destroy())
    ),
    (dispatcher) => async (input, init) => {
      // Node declares the package's types a second time.
      const over: object = { dispatcher }
      // Signals of AbortSignal.any may be garbage-collected before they fire.
      const ending = new AbortController()
      const end = () => ending.abort()
      const limit = setTimeout(end, timeoutMillis)
      init?.signal?.addEventListener("abort", end)
      try {
        const { signal } = ending
        const answer = await fetch(input, { ...init, signal, redirect: "manual", ...over })
        const body = await answer.arrayBuffer()
        // The agent reuses a connection one turn of the event loop later.
        await turn()
        return new Response(bodiless.has(answer.status) ? null : body, answer)
      } catch (error) {
        throw error instanceof Error && error.cause instanceof Error ? error.cause : error
      } finally {
        clearTimeout(limit)
        init?.signal?.removeEventListener("abort", end)
      }
    }
  )
