import * as Effect from "effect/Effect"
import * as AwsKms from "../../adapters/keys/aws-kms/AwsKms.js"
import * as Keys from "../../support/kms/Keys.js"
import type { Server } from "../../support/kms/Server.js"
import * as Build from "./Build.js"
import { exchange } from "./Client.js"
import * as FaultProxy from "./FaultProxy.js"
import * as Rig from "./Rig.js"
import * as World from "./World.js"

/**
 * Accepted work outlasts temporary faults: a silent signer, a node that replies with errors, a stopped process. All of
 * it is executed afterwards, once.
 */

interface Trial {
  readonly name: string
  /** From here on no accepted transaction is mined, until the trouble ends. */
  readonly trouble: (rig: Rig.Rig<FaultProxy.FaultProxy>, key: Server) => void
  /** When every request is accepted. */
  readonly worse?: (rig: Rig.Rig<FaultProxy.FaultProxy>) => void
  readonly end: (rig: Rig.Rig<FaultProxy.FaultProxy>, key: Server) => void
  readonly minutes: number
}

const works = 20
const salts = ["one", "two", "three", "four"]
const expiryMillis = 1_800_000
/** All work is done within this time after the trouble. */
const afterMillis = 120_000

const sleep = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

const error = { kind: "wrong error", forwarded: false, code: -32_603, message: "internal error" } as const

const trials = (minutes: number): ReadonlyArray<Trial> => [
  {
    name: "a signer that is silent",
    trouble: (_, key) => {
      key.fault = () => "hang"
    },
    end: (_, key) => {
      key.fault = null
    },
    minutes
  },
  {
    name: "a node that answers with errors",
    // Prepares requests and fails at the first sent transaction.
    trouble: ({ node }) => {
      let isBroken = false
      node.play((stream) => {
        isBroken ||= stream === "send"
        return isBroken ? error : null
      })
    },
    worse: ({ node }) => node.play(() => error),
    end: ({ node }) => node.calm(),
    minutes
  },
  {
    name: "a process that is stopped",
    trouble: ({ node }) => node.play((stream) => (stream === "send" ? { kind: "cut before" } : null)),
    worse: ({ supervisor }) => supervisor.freeze(),
    end: ({ node, supervisor }) => {
      node.calm()
      supervisor.thaw()
    },
    minutes: Math.min(minutes, 3)
  }
]

const run = (world: World.World, build: Build.Build, { end, minutes, name, trouble, worse }: Trial) =>
  Effect.scoped(
    Effect.gen(function* () {
      let key = ""
      const stored: Array<AwsKms.Key> = []
      const { endpoint, server } = yield* AwsKms.make(stored)
      const rig = yield* Effect.promise(() =>
        Rig.start(world, build, {
          salts,
          node: FaultProxy.start,
          requestExpiryMillis: expiryMillis,
          held: (privateKey) => {
            key = AwsKms.arn("patience")
            stored.push(AwsKms.key("patience", Keys.secp256k1(privateKey)))
            return {
              key,
              provider: {
                kind: "aws-kms",
                name: "kms",
                region: AwsKms.region,
                endpoint,
                credentials: {
                  accessKeyId: AwsKms.accessKeyId,
                  secretAccessKey: AwsKms.secretAccessKey
                }
              }
            }
          }
        })
      )
      return yield* Effect.promise(async () => {
        const { apiKey, settings, supervisor } = rig
        const ids = Array.from({ length: works }, (_, n) => Rig.idOf(`${name} ${n}`))
        trouble(rig, server)
        const accepted = await Promise.all(
          ids.map(async (id, n) => {
            const operations = [rig.hit(salts[n % salts.length] ?? "", id)]
            const body = { operations, settings }
            const patience = 60_000
            const question = { path: "/execute", apiKey, key: `patience-${n}`, body, isAsync: true, patience }
            const answer = await exchange(supervisor, question)
            if (answer?.status !== 202) throw new Error(`${name}: not accepted: ${JSON.stringify(answer)}`)
            return answer.body.requestId ?? ""
          })
        )
        worse?.(rig)
        await sleep(minutes * 60_000)
        end(rig, server)
        const until = Date.now() + afterMillis
        let left = accepted
        const wrong: Array<string> = []
        while (left.length > 0 && Date.now() < until) {
          await sleep(500)
          const answers = await Promise.all(
            left.map(async (requestId) => ({
              requestId,
              answer: await rig.get(`/requests/${requestId}`, "look")
            }))
          )
          left = answers.flatMap(({ answer, requestId }) => {
            const { answer: final, httpStatus } = answer?.body ?? {}
            if (httpStatus == null) return [requestId]
            if (httpStatus !== 200 || final?.status !== 1) wrong.push(JSON.stringify(answer?.body))
            return []
          })
        }
        const counts = await Promise.all(ids.map(rig.count))
        for (const [n, count] of counts.entries()) if (count !== 1) wrong.push(`${n} executed ${count} times`)
        const seconds = Math.round((Date.now() - until + afterMillis) / 1_000)
        await rig.stop()
        return { name, minutes, seconds, wrong: [...wrong, ...left.map((id) => `no end: ${id}`)] }
      })
    })
  )

/** Whether all work was done once, after `minutes` of trouble. */
export const passed = async (minutes: number, print: (line: string) => void): Promise<boolean> => {
  const build = await Build.make()
  const world = await World.start()
  try {
    const reports = await Promise.all(
      trials(minutes).map((trial) => Effect.runPromise(run(world, build, trial)))
    )
    for (const { minutes, name, seconds, wrong } of reports) {
      print(
        `${name} for ${minutes} minutes: ${works} accepted, all done ${seconds} s after it; wrong ${wrong.length}`
      )
      for (const line of wrong) print(`    ${line}`)
    }
    return reports.every(({ wrong }) => wrong.length === 0)
  } finally {
    await world.stop()
    build.remove()
  }
}
