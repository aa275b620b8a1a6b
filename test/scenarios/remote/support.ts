import * as Redacted from "effect/Redacted"
import { afterAll, beforeEach, expect } from "vitest"
import type { Fields } from "../../../src/application/ports/NetworkProfile.js"
import { type StandIn, startStandIn } from "../../support/bundler/StandIn.js"
import { keyOf, type Stack, useStack } from "../../support/stack/Stack.js"

/** A stack whose chain has an external bundler. */
export const useRemote = (profile: Fields, prepare: (stack: Stack) => Promise<unknown>) => {
  const bundler = {} as StandIn
  /** Number of ops it had received before this test. */
  let before = 0
  const stack = useStack(
    async () => {
      Object.assign(bundler, await startStandIn())
      return { profile: { ...profile, remoteBundler: Redacted.make(bundler.url) } }
    },
    async (stack) => {
      bundler.attach(stack.provider, keyOf(7))
      await prepare(stack)
    }
  )
  afterAll(() => bundler.stop())
  beforeEach(() => {
    bundler.behave(() => ({ does: "submit" }))
    before = bundler.sent.length
  })
  /** The ops it received in this test. */
  const sent = () => bundler.sent.slice(before)
  return {
    bundler,
    stack,
    sent,
    given: (count: number) => expect.poll(() => sent().length, { timeout: 10_000 }).toBe(count),
    /** Number of distinct ops: a repeat is the same, byte for byte. */
    different: () => new Set(sent().map(({ op }) => JSON.stringify(op))).size,
    /** Sets the bundler's conduct; `turn` counts the ops of this test. */
    behave: (conduct: (turn: number) => ReturnType<Parameters<StandIn["behave"]>[0]>) =>
      bundler.behave((_, turn) => conduct(turn - before))
  }
}
