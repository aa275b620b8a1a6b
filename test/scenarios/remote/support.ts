import * as Redacted from "effect/Redacted"
import { afterAll, beforeEach, expect } from "vitest"
import type { Fields } from "../../../src/application/ports/NetworkProfile.js"
import { type StandIn, startStandIn } from "../../support/bundler/StandIn.js"
import { keyOf, type Stack, useStack } from "../../support/stack/Stack.js"

/** A stack whose chain has a bundler of somebody else. */
export const useRemote = (profile: Fields, prepare: (stack: Stack) => Promise<unknown>) => {
  const bundler = {} as StandIn
  /** How many ops it had been sent before this test. */
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
  /** What it was sent in this test. */
  const sent = () => bundler.sent.slice(before)
  return {
    bundler,
    stack,
    sent,
    given: (count: number) => expect.poll(() => sent().length, { timeout: 10_000 }).toBe(count),
    /** How many ops those are: one that was sent again is the same, byte for byte. */
    different: () => new Set(sent().map(({ op }) => JSON.stringify(op))).size,
    /** From the op of this test at that place on. */
    behave: (conduct: (turn: number) => ReturnType<Parameters<StandIn["behave"]>[0]>) =>
      bundler.behave((_, turn) => conduct(turn - before))
  }
}
