import { describe, expect, it } from "vitest"
import { refusal } from "../../support/stack/FaultyNode.js"
import { idOf, once, success, useRigs, works } from "./support.js"

/** What stopped lanes of other services for hours, or for ever. */

const rigs = useRigs()

/** OpenZeppelin relayer #818, #843: the lane is jammed for days, and a restart does not help. */
it.each([
  ["after", "allocate"],
  ["after", "recordSigned"],
  ["before", "settle"]
] as const)("a process that is killed %s `%s` leaves a lane that works after the restart", (moment, step) =>
  rigs.using({ kills: [{ at: "journal", step, moment, nth: 1, atLatest: null }] }, async (rig) => {
    const id = idOf(rig, "jam")
    const before = await rig.nonce()
    rig.supervisor.arm()
    const answer = await rig.execute("jam", rig.hit("a", id))
    expect(rig.supervisor.restarts()).toBe(1)
    expect(answer).toMatchObject(success)
    await once(rig, before, id)
    await works(rig)
  })
)

describe("a node that does not take a transaction", () => {
  /** OpenZeppelin relayer #681: `-32603 nonce too low` is taken as retriable, and the lane waits for itself. */
  it("since somebody else was faster, under the code of an internal error, holds nothing up", () =>
    rigs.using({}, async (rig) => {
      let sends = 0
      rig.node.behave(async ({ method }, ask) => {
        if (method !== "eth_sendRawTransaction") return ask()
        sends += 1
        if (sends === 1) await rig.foreign(await rig.nonce())
        const answer = await ask()
        return "error" in answer ? refusal(-32603, "nonce too low") : answer
      })
      const id = idOf(rig, "low")
      const before = await rig.nonce()
      expect(await rig.execute("low", rig.hit("a", id))).toMatchObject(success)
      await once(rig, before, id, 2)
      await works(rig)
    }))

  /** rrelayer #113: a failed send strands its nonce. */
  it.each([
    "txpool is full",
    "transaction underpriced: tip needed 25000000000, tip permitted 1000000000",
    "the sequencer is having a moment"
  ])("because of %j has it later under its own nonce", (message) =>
    rigs.using({}, async (rig) => {
      let refused = 0
      rig.node.behave(async ({ method }, ask) => {
        if (method !== "eth_sendRawTransaction" || refused > 0) return ask()
        refused += 1
        return refusal(-32000, message)
      })
      const id = idOf(rig, "refused")
      const before = await rig.nonce()
      expect(await rig.execute("refused", rig.hit("a", id))).toMatchObject(success)
      expect(refused).toBe(1)
      await once(rig, before, id)
      await works(rig)
    })
  )

  /** daimo #1246: the local nonce drifts from the chain's for 40 minutes. */
  it("any more, since it has lost it, is given it again", () =>
    rigs.using({}, async (rig) => {
      const id = idOf(rig, "lost")
      const before = await rig.nonce()
      await rigs.send("evm_setAutomine", false)
      const answer = rig.execute("lost", rig.hit("a", id))
      await expect.poll(async () => (await rig.pending()).length, { timeout: 10_000 }).toBe(1)
      await rigs.send("anvil_removePoolTransactions", rig.signer.address)
      await rigs.send("evm_mine")
      await rigs.send("evm_setAutomine", true)
      expect(await answer).toMatchObject(success)
      await once(rig, before, id)
      await works(rig)
    }))
})
