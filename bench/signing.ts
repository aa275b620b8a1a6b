import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { keccak256 } from "ethers"
import * as ExecuteOperations from "../src/application/operation/ExecuteOperations.js"
import type { Signer } from "../src/application/ports/Signers.js"
import * as Address from "../src/domain/evm/Address.js"
import * as Hex from "../src/domain/evm/Hex.js"
import * as Scripted from "../test/support/signing/Scripted.js"
import * as Slow from "../test/support/signing/Slow.js"
import { keyOf, startStack } from "../test/support/stack/Stack.js"

/**
 * `npm run bench:signing`: 50 ops signed by a key that takes 150 ms for each call, as one in a KMS does: through the key
 * ring alone, and in a whole `/execute` of 50 operations on a local chain. Fails when the ring takes half a second.
 */

const latencyMillis = 150
const size = 50
const turns = 10
const boundMillis = 500

const scope = await Effect.runPromise(Scope.make())
const privateKey = keyOf(1).privateKey
const ring = (maxBatch: number): Promise<Signer> =>
  Effect.runPromise(Scope.extend(Scripted.signer(Slow.make(privateKey, latencyMillis, maxBatch)), scope))
const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0

const ofRing = async (signer: Signer, seed: number): Promise<number> => {
  const digests = Array.from({ length: size }, (_, n) =>
    Hex.unsafe32(keccak256(`0x${(seed * size + n).toString(16).padStart(8, "0")}`))
  )
  const began = performance.now()
  await Effect.runPromise(Effect.forEach(digests, signer.sign, { concurrency: "unbounded" }))
  return performance.now() - began
}

console.log(`${size} signatures by a key that takes ${latencyMillis} ms a call`)
let slowest = 0
for (const maxBatch of [1, 16]) {
  const signer = await ring(maxBatch)
  const times: Array<number> = []
  for (let turn = 0; turn < turns; turn++) times.push(await ofRing(signer, turn))
  slowest = Math.max(slowest, median(times))
  console.log(
    `  ${maxBatch === 1 ? "one digest" : `${maxBatch} digests`} a call: median ${median(times).toFixed(0)} ms, slowest ${Math.max(...times).toFixed(0)} ms of ${turns}`
  )
}

/** From the first question of a request to the answer that lets the ops be sent. */
const spans: Array<{ readonly from: number; readonly to: number }> = []
const slow = await ring(1)
const timed = (signer: Signer): Signer => ({
  ...signer,
  sign: (digest) =>
    Effect.suspend(() => {
      const from = performance.now()
      return Effect.tap(slow.sign(digest), () => {
        spans.push({ from, to: performance.now() })
      })
    })
})
const stack = await startStack({ wrapSigner: timed })
try {
  await stack.create("bench")
  await stack.mint(stack.predict("bench"), 1_000n)
  const token = Address.unsafe(await stack.token.getAddress())
  const operations = Array.from({ length: size }, () => ({
    salt: "bench",
    walletCustody: 1 as const,
    to: token,
    funcSignature: "transfer(address,uint256)",
    funcParams: ["0x000000000000000000000000000000000000dEaD", "1"]
  }))
  spans.splice(0)
  const began = performance.now()
  const { status, txHashes } = await stack.ask(
    ExecuteOperations.run(stack.caller(), { operations, settings: stack.settings })
  )
  const whole = performance.now() - began
  const ops = spans.slice(0, size)
  const signing = Math.max(...ops.map(({ to }) => to)) - Math.min(...ops.map(({ from }) => from))
  console.log(
    `/execute of ${size} operations: status ${status}, ${txHashes.length} transactions, ${spans.length} signatures, first ${ops.length} within ${signing.toFixed(0)} ms, answered after ${whole.toFixed(0)} ms`
  )
} finally {
  await stack.stop()
  await Effect.runPromise(Scope.close(scope, Exit.void))
}
if (slowest >= boundMillis) {
  console.log(`the ring takes ${slowest.toFixed(0)} ms, which is not below ${boundMillis} ms`)
  process.exitCode = 1
}
