import { expect, it } from "vitest"
import * as FaultProxy from "../../faults/support/FaultProxy.js"
import * as Random from "../../faults/support/Random.js"
import { idOf, success, useRigs } from "./support.js"

/** Bundles that other services lost, evicted, or tried for ever. */

const rigs = useRigs()
const receiptTimeoutMillis = 60_000

/** handleOps of EntryPoint v0.7. */
const handleOps = "0x765e827f"
const error = { code: 3, message: "execution reverted", data: "0x" }

/** rundler #1316, #1317, #939: innocent ones are evicted, or the bundler tries the same bundle for ever. */
it("an operation that reverts the bundle without being named is found and reported; the nine with it land, in few attempts", () => {
  const salts = Array.from({ length: 10 }, (_, n) => `w${n}`)
  return rigs.using({ salts, receiptTimeoutMillis }, async (rig) => {
    const ids = salts.map((salt) => idOf(rig, salt))
    const poison = String(ids[6]).slice(2)
    let simulations = 0
    rig.node.behave(async ({ method, params }, ask) => {
      if (method !== "eth_call" && method !== "eth_simulateV1") return ask()
      const text = JSON.stringify(params)
      if (!text.includes(handleOps)) return ask()
      simulations += 1
      if (!text.includes(poison)) return ask()
      if (method === "eth_call") return { error }
      const call = { status: "0x0", gasUsed: "0x0", logs: [], returnData: "0x", error }
      return { result: [{ calls: [call] }] }
    })
    const answer = await rig.execute("poisoned", ...salts.map((salt, n) => rig.hit(salt, ids[n] ?? "")))
    expect(answer).toMatchObject({ status: 200, body: { status: 4 } })
    const done = answer.body.returnData?.map((element, n) => element[n]?.success)
    expect(done).toEqual(ids.map((_, n) => n !== 6))
    expect(await Promise.all(ids.map(rig.count))).toEqual(ids.map((_, n) => (n === 6 ? 0 : 1)))
    expect(simulations).toBeLessThan(20)
  })
})

/** thirdweb engine, in a load test of RequestNetwork (PR #1606): 94 of 100 concurrent requests are lost. */
it("a node that refuses every second call with 429 costs none of 100 concurrent executions", () => {
  const salts = Array.from({ length: 25 }, (_, n) => `w${n}`)
  return rigs.behind({ salts, node: FaultProxy.start, receiptTimeoutMillis }, async (rig) => {
    const random = Random.make("every second call")
    let refused = 0
    let calls = 0
    rig.node.play(() => {
      calls += 1
      if (random.chance(0.5)) return null
      refused += 1
      return { kind: "429", burst: 1, retryAfter: null }
    })
    const ids = Array.from({ length: 100 }, (_, n) => idOf(rig, String(n)))
    const answers = await Promise.all(
      ids.map((id, n) => {
        const operations = [rig.hit(salts[n % salts.length] ?? "", id)]
        return rig.once("/execute", null, { operations, settings: rig.settings }, 90_000)
      })
    )
    expect(answers).toMatchObject(answers.map(() => success))
    expect(await Promise.all(ids.map(rig.count))).toEqual(ids.map(() => 1))
    // Ops share what they ask, so that how many calls there are is no fact; that many of them were refused is.
    expect(refused).toBeGreaterThan(calls / 3)
  })
}, 180_000)
