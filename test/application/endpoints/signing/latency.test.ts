import { expect } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { keccak256, recoverAddress } from "ethers"
import * as Hex from "../../../../src/domain/primitives/Hex.js"
import * as Scripted from "../../../support/signing/Scripted.js"
import * as Slow from "../../../support/signing/Slow.js"
import { test } from "../../../support/Test.js"
import * as Time from "../../../support/Time.js"

const privateKey = `0x${"a1".repeat(32)}`
const latencyMillis = 150
const bundle = Array.from({ length: 50 }, (_, n) =>
  Hex.unsafe32(keccak256(`0x${n.toString(16).padStart(2, "0")}`))
)

test("a bundle of 50 with a 150 ms key is signed in the time of one signature", function* () {
  const provider = Slow.make(privateKey, latencyMillis)
  const signer = yield* Scripted.signer(provider)
  const signing = yield* Effect.forkChild(Effect.forEach(bundle, signer.sign, { concurrency: "unbounded" }))
  yield* Effect.repeat(Effect.yieldNow, { until: () => provider.calls() === bundle.length })
  yield* Time.adjust(latencyMillis - 1)
  expect(signing.pollUnsafe()).toBeUndefined()
  yield* Time.adjust(1)
  const signatures = yield* Fiber.join(signing)
  for (const [index, signature] of signatures.entries())
    expect(recoverAddress(bundle[index] ?? "", signature)).toBe(signer.address)
  expect([provider.calls(), provider.most()]).toEqual([50, 50])
})
