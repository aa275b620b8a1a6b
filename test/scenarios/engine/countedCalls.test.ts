import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { Caller } from "../../../src/application/request/Caller.js"
import * as Sweep from "../../../src/application/sweep/Sweep.js"
import * as GetRequest from "../../../src/application/usecases/operations/GetRequest.js"
import * as TransactSigner from "../../../src/application/usecases/operations/TransactSigner.js"
import { countingGateway, type HostileNode, refusing, relaying } from "../../support/HostileNode.js"
import { Address, type Stack, startStack } from "../../support/stack/Stack.js"

const dead = Address.unsafe("0x000000000000000000000000000000000000dead")
/** More of them than the gateway takes calls at once. */
const inFlight = 16
const perSecond = 15

let stack: Stack
beforeAll(async () => {
  stack = await startStack()
})
afterAll(() => stack.stop())

describe("transactions in flight behind a gateway that counts the calls of a batch", () => {
  it.each(["429 alone", "one error", "one error for each call"])(
    "and refuses it whole by %s: each is seen as final",
    async (how) => {
      let gate: HostileNode | undefined
      const life = stack.begin({ profile: { receiptTimeoutMillis: 60_000, pollIntervalMillis: 100 } })
      try {
        gate = await countingGateway(perSecond, refusing[how] ?? (() => undefined), relaying(stack.anvil.url))
        const { url } = gate
        await life.runPromise(Sweep.start)
        await stack.provider.send("evm_setAutomine", [false])
        const callers = await Promise.all(
          Array.from({ length: inFlight }, async (_, n): Promise<Caller> => {
            const caller = stack.caller()
            const requestId = await new Promise<string>((resolve, reject) => {
              const asked: Caller = { ...caller, isAsynchronous: true, onAccepted: resolve }
              const request = {
                to: dead,
                funcSignature: "receive()",
                value: BigInt(n + 1),
                settings: { ...stack.settings, rpc: url }
              }
              life.runPromise(TransactSigner.run(asked, request)).catch(reject)
            })
            return { ...caller, requestId }
          })
        )
        const pending = async () => Number((await stack.provider.send("txpool_status", [])).pending)
        await expect.poll(pending, { timeout: 60_000, interval: 200 }).toBe(inFlight)
        await stack.provider.send("evm_mine", [])
        const states = await life.runPromise(
          Effect.forEach(
            callers,
            (caller) => GetRequest.run(caller, { requestId: caller.requestId, wait: "60" }),
            { concurrency: "unbounded" }
          )
        )
        expect(states.map(({ state }) => state)).toEqual(states.map(() => "final"))
      } finally {
        await stack.provider.send("evm_setAutomine", [true])
        await life.dispose()
        await gate?.close()
      }
    },
    180_000
  )
})
