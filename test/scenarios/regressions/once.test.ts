import { expect, it } from "vitest"
import { idOf, once, success, useRigs } from "./support.js"

/** What other services did twice. */

const rigs = useRigs()

/** OpenZeppelin relayer #836: two concurrent preparations send twice. */
it("one request that is sent ten times at once with one key is done once, and answered ten times alike", () =>
  rigs.using({}, async (rig) => {
    const id = idOf(rig, "ten")
    const before = await rig.nonce()
    const body = { operations: [rig.hit("a", id)], settings: rig.settings }
    const answers = await Promise.all(Array.from({ length: 10 }, () => rig.insist("/execute", "ten", body)))
    expect(answers[0]).toMatchObject(success)
    for (const answer of answers) expect(answer.body).toEqual(answers[0]?.body)
    await once(rig, before, id)
  }))

/** daimo #913: the client's retry duplicates the op. */
it("one request whose client hangs up and asks again, and again, is done once, and has the same answer ever after", () =>
  rigs.using({ receiptTimeoutMillis: 1_000 }, async (rig) => {
    const id = idOf(rig, "impatient")
    const before = await rig.nonce()
    await rigs.send("evm_setAutomine", false)
    const body = { operations: [rig.hit("a", id)], settings: rig.settings }
    for (let n = 0; n < 5; n += 1) expect(await rig.once("/execute", "impatient", body, 150)).toBe(null)
    const unknown = await rig.once("/execute", "impatient", body)
    expect(unknown).toMatchObject({ status: 422, body: { code: "outcome_unknown" } })
    await rigs.send("evm_mine")
    await rigs.send("evm_setAutomine", true)
    const answer = await rig.insist("/execute", "impatient", body)
    expect(answer).toMatchObject({ ...success, body: { txHash: unknown?.body.txHash } })
    expect((await rig.insist("/execute", "impatient", body)).body).toEqual(answer.body)
    await once(rig, before, id)
  }))

/** alto: SIGKILL while a wallet is leased, and it is leased for ever. */
it("a wallet whose nonce keys were leased when the service was killed works again, all sixteen keys of it", () =>
  rigs.using(
    {
      kills: [{ at: "journal", step: "lease", moment: "after", nth: 16, atLatest: null }],
      // Longer than keys are leased: what was accepted before the end waits for them.
      receiptTimeoutMillis: 60_000
    },
    async (rig) => {
      const ids = Array.from({ length: 16 }, (_, n) => idOf(rig, `lease ${n}`))
      rig.supervisor.arm()
      const answers = await Promise.all(ids.map((id, n) => rig.execute(`lease-${n}`, rig.hit("a", id))))
      expect(rig.supervisor.restarts()).toBe(1)
      expect(answers).toMatchObject(answers.map(() => success))
      expect(await Promise.all(ids.map(rig.count))).toEqual(ids.map(() => 1))
    }
  ))
