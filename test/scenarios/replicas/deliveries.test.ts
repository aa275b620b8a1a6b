import { id as hashOf } from "ethers"
import pg from "pg"
import { expect, it } from "vitest"
import * as Build from "../../faults/support/Build.js"
import * as Receiver from "../../faults/support/Receiver.js"
import * as Fleet from "../../replicas/support/Fleet.js"
import type * as Replica from "../../replicas/support/Replica.js"

/** Any account of the service. */
const account = "told"

const until = async (holds: () => boolean): Promise<void> => {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 50))
}

it("one of two processes sends a webhook its events, each once; when it dies the other continues, and only unfinished deliveries are repeated", async () => {
  const build = await Build.make()
  const receiver = await Receiver.start(1)
  const fleet = await Fleet.start({ build, replicas: 2, wallets: 4, signers: 1, name: "deliveries" })
  const database = new pg.Client({ connectionString: fleet.postgres.url("replicas") })
  try {
    await database.connect()
    const [one, other] = fleet.replicas as readonly [Replica.Replica, Replica.Replica]
    expect(
      await fleet.exchange(one, { path: "/webhooks", account, body: { url: receiver.url } })
    ).toMatchObject({
      status: 200
    })
    const execute = async (replica: Replica.Replica, name: string): Promise<string> => {
      const question = {
        path: "/execute",
        account,
        key: name,
        body: fleet.hit(0, hashOf(name)),
        isAsync: true
      }
      const answer = await fleet.exchange(replica, question)
      if (typeof answer === "string" || answer.status !== 202) throw new Error(JSON.stringify(answer))
      return answer.requestId
    }
    const told = (requestId: string) =>
      receiver.arrivals().flatMap((arrival) => (arrival.requestId === requestId ? [arrival.sequence] : []))
    const isOver = (requestId: string) =>
      receiver.arrivals().some((arrival) => arrival.requestId === requestId && arrival.kind === "final")

    const before = await Promise.all(
      Array.from({ length: 12 }, (_, n) => execute(n % 2 === 0 ? one : other, `before-${n}`))
    )
    await until(() => before.every(isOver))
    for (const requestId of before) {
      const sequences = told(requestId)
      expect(sequences).toEqual(sequences.map((_, index) => index + 1))
    }

    const { rows } = await database.query<{ owner: string }>("select claimed_by as owner from webhooks")
    const owner = fleet.replicas.find((replica) => replica.processes().includes(rows[0]?.owner ?? ""))
    const heir = fleet.replicas.find((replica) => replica !== owner)
    if (owner === undefined || heir === undefined) throw new Error(`unknown owner ${rows[0]?.owner}`)
    const during = await Promise.all(Array.from({ length: 8 }, (_, n) => execute(heir, `during-${n}`)))
    await owner.kill()
    await until(() => during.every(isOver))
    for (const requestId of [...before, ...during]) {
      const first = [...new Set(told(requestId))]
      expect(first).toEqual(first.map((_, index) => index + 1))
    }
    const twice = receiver.arrivals().length - new Set(receiver.arrivals().map(nameOf)).size
    // Eight attempts are made at a time.
    expect(twice).toBeLessThanOrEqual(8)
  } finally {
    await database.end()
    await fleet.stop()
    await receiver.stop()
    build.remove()
  }
}, 300_000)

const nameOf = ({ requestId, sequence }: Receiver.Told): string => `${requestId} ${sequence}`
