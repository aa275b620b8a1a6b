import { afterAll, beforeAll, describe, expect, it } from "vitest"
import * as Build from "../../support/faults/Build.js"
import * as Rig from "../../support/faults/Rig.js"
import type { Kill } from "../../support/faults/Scenario.js"
import * as World from "../../support/faults/World.js"
import { type FaultyNode, startFaultyNode } from "../../support/stack/FaultyNode.js"

/** What other services did twice. */

let world: World.World
let build: Build.Build

beforeAll(async () => {
  build = await Build.make()
  world = await World.start()
})
afterAll(async () => {
  await world.stop()
  build.remove()
})

const using = async (
  test: (rig: Rig.Rig<FaultyNode>) => Promise<void>,
  kills: ReadonlyArray<Kill> = [],
  receiptTimeoutMillis = 20_000
) => {
  const rig = await Rig.start(world, build, {
    salts: ["a", "b"],
    node: startFaultyNode,
    kills,
    receiptTimeoutMillis
  })
  try {
    await test(rig)
  } finally {
    await rig.stop()
  }
}

const success = { status: 200, body: { status: 1 } }

describe("one request", () => {
  /** OpenZeppelin relayer #836: two concurrent preparations send twice. */
  it("sent ten times at once with one key is done once, and answered ten times alike", async () => {
    await using(async (rig) => {
      const id = Rig.idOf(`${rig.signer.address} ten`)
      const before = await rig.nonce()
      const body = { operations: [rig.hit("a", id)], settings: rig.settings }
      const answers = await Promise.all(Array.from({ length: 10 }, () => rig.insist("/execute", "ten", body)))
      for (const answer of answers) {
        expect(answer).toMatchObject(success)
        expect(answer.body).toEqual(answers[0]?.body)
      }
      expect(await rig.count(id)).toBe(1)
      expect(await rig.nonce()).toBe(before + 1)
    })
  })

  /** rrelayer #113: the response of the node is lost, and the transaction is executed twice. */
  it("whose transaction the node took without an answer is done once", async () => {
    await using(async (rig) => {
      let cut = 0
      rig.node.behave(async ({ method }, ask) => {
        const answer = await ask()
        if (method !== "eth_sendRawTransaction" || cut > 0) return answer
        cut += 1
        return null
      })
      const id = Rig.idOf(`${rig.signer.address} cut`)
      const before = await rig.nonce()
      expect(await rig.execute("cut", rig.hit("a", id))).toMatchObject(success)
      expect(cut).toBe(1)
      expect(await rig.count(id)).toBe(1)
      expect(await rig.nonce()).toBe(before + 1)
    })
  })

  /** daimo #913: the client's retry duplicates the op. */
  it("whose client hangs up and asks again, and again, is done once", async () => {
    await using(async (rig) => {
      await world.send("evm_setAutomine", false)
      const id = Rig.idOf(`${rig.signer.address} impatient`)
      const before = await rig.nonce()
      const body = { operations: [rig.hit("a", id)], settings: rig.settings }
      for (let n = 0; n < 5; n += 1) expect(await rig.once("/execute", "impatient", body, 150)).toBe(null)
      await world.send("evm_setAutomine", true)
      await world.send("evm_mine")
      expect(await rig.insist("/execute", "impatient", body)).toMatchObject(success)
      expect(await rig.count(id)).toBe(1)
      expect(await rig.nonce()).toBe(before + 1)
    })
  })

  it("that was unknown when its time was over has the same answer ever after", async () => {
    await using(
      async (rig) => {
        await world.send("evm_setAutomine", false)
        const id = Rig.idOf(`${rig.signer.address} slow`)
        const body = { operations: [rig.hit("a", id)], settings: rig.settings }
        const unknown = await rig.once("/execute", "slow", body)
        expect(unknown).toMatchObject({ status: 422, body: { code: "outcome_unknown" } })
        await world.send("evm_mine")
        await world.send("evm_setAutomine", true)
        const answer = await rig.insist("/execute", "slow", body)
        expect(answer).toMatchObject({ ...success, body: { txHash: unknown?.body.txHash } })
        expect((await rig.insist("/execute", "slow", body)).body).toEqual(answer.body)
        expect(await rig.count(id)).toBe(1)
      },
      [],
      1_000
    )
  })

  it("whose node is away after its acceptance, for longer than its caller waits, is done once it is back", async () => {
    await using(
      async (rig) => {
        let isAway = false
        rig.node.behave(async ({ method }, ask) => {
          // What is simulated so is an accepted request's.
          isAway ||= method === "eth_simulateV1"
          return isAway ? null : ask()
        })
        const id = Rig.idOf(`${rig.signer.address} away`)
        const body = { operations: [rig.hit("a", id)], settings: rig.settings }
        const unknown = await rig.once("/execute", "away", body)
        expect(unknown).toMatchObject({ status: 422, body: { code: "outcome_unknown" } })
        rig.node.behave()
        expect(await rig.insist("/execute", "away", body)).toMatchObject(success)
        expect(await rig.count(id)).toBe(1)
      },
      [],
      1_000
    )
  })

  for (const [moment, step] of [
    ["after", "recordSigned"],
    ["before", "settle"],
    ["after", "settle"]
  ] as const)
    it(`whose service dies ${moment} ${step} is done once`, async () => {
      await using(
        async (rig) => {
          const id = Rig.idOf(`${rig.signer.address} dies`)
          const before = await rig.nonce()
          rig.supervisor.arm()
          expect(await rig.execute("dies", rig.hit("a", id))).toMatchObject(success)
          expect(rig.supervisor.restarts()).toBe(1)
          expect(await rig.count(id)).toBe(1)
          expect(await rig.nonce()).toBe(before + 1)
        },
        [{ at: "journal", step, moment, nth: 1, atLatest: null }]
      )
    })
})

describe("a wallet whose nonce keys were leased when the service was killed", () => {
  /** alto: SIGKILL while a wallet is leased, and it is leased for ever. */
  it("works again after the restart, all sixteen keys of it", async () => {
    await using(
      async (rig) => {
        const ids = Array.from({ length: 16 }, (_, n) => Rig.idOf(`${rig.signer.address} lease ${n}`))
        rig.supervisor.arm()
        const answers = await Promise.all(ids.map((id, n) => rig.execute(`lease-${n}`, rig.hit("a", id))))
        expect(rig.supervisor.restarts()).toBe(1)
        for (const answer of answers) expect(answer).toMatchObject(success)
        expect(await Promise.all(ids.map(rig.count))).toEqual(ids.map(() => 1))
      },
      [{ at: "journal", step: "lease", moment: "after", nth: 16, atLatest: null }],
      // Longer than keys are leased: what was accepted before the end waits for them.
      60_000
    )
  })
})
