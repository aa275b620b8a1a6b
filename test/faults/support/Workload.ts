import { id as hashOf } from "ethers"
import { type Answer, ask, type EstimatedOp, essence, type Question } from "./Client.js"
import type * as Receiver from "./Receiver.js"
import type { Deed, RequestPlan, Scenario } from "./Scenario.js"
import type { Store } from "./Store.js"
import type { Supervisor } from "./Supervisor.js"
import { entryPoints, signerRef, type Tenant, type World } from "./World.js"

/** The service's word on one piece of work: done, not done, or nothing. */
export type Said = "success" | "failure" | "nothing"

/** One piece of work that must happen exactly once, or not at all when it is reported as failed. */
export interface Work {
  /** The counter's id, or the wallet's address. */
  readonly id: string
  readonly kind: "count" | "wallet"
  readonly deed: Deed
  readonly request: number
  /** Id of the work it depends on; null: none. */
  readonly after: string | null
  said: Said
  why: string
}

export interface Setting {
  readonly scenario: Scenario
  readonly world: World
  readonly receiver: Receiver.Receiver
  readonly store: Store
  readonly supervisor: Supervisor
  readonly nodeUrl: string
  /** By signer. */
  readonly tenants: ReadonlyArray<Tenant>
  /** By wallet. */
  readonly salts: ReadonlyArray<string>
  /** Wallets of the creations of the storm, by salt. */
  readonly newcomers: ReadonlyMap<string, string>
  readonly gate: string
  readonly calm: () => boolean
  readonly deadline: () => number
}

/** Salts of the wallets that a request of the storm creates. */
export const saltsOf = ({ seed }: Scenario, plan: RequestPlan, index: number): ReadonlyArray<string> =>
  plan.endpoint === "create" ? plan.ops.map((_, place) => `new ${seed} ${index} ${place}`) : []

/** A finished request, for clients that repeat it. */
export interface Asked {
  readonly question: Question
  readonly answer: Answer
  /** Replaces the earlier answer by the present one. */
  readonly hear: (answer: Answer) => void
}

export interface Outcome {
  readonly works: ReadonlyArray<Work>
  readonly asked: ReadonlyArray<Asked>
  /** Answers that no service may give. */
  readonly violations: ReadonlyArray<string>
  readonly met: ReadonlyArray<string>
}

export const settingsOf = ({ nodeUrl, scenario }: Setting, signer: number) => ({
  rpc: nodeUrl,
  entryPoint: entryPoints[scenario.version],
  signer: signerRef(signer)
})

const callOf = (deed: Deed, gate: string, id: string) =>
  deed === "hitIfOpen"
    ? { funcSignature: "hitIfOpen(bytes32,bytes32)", funcParams: [gate, id] }
    : { funcSignature: `${deed}(bytes32)`, funcParams: [id] }

/** The answer for the element at this index of the request. */
const saidOf = ({ body, status }: Answer, place: number): readonly [Said, string] => {
  if (status !== 200) return ["failure", `${status} ${body.code}: ${body.error}`]
  const element = body.returnData?.[place]?.[place]
  if (element === undefined) return ["failure", `200 status ${body.status}, no element`]
  const done = element.success ?? element.error === undefined
  return [done ? "success" : "failure", `200 status ${body.status}: ${element.error ?? ""}`]
}

/** Sends one request of the storm, as its client or as two clients, and hears its answer. */
export const run = async (setting: Setting, plan: RequestPlan, index: number): Promise<Outcome> => {
  const { calm, deadline, gate, newcomers, salts, scenario, supervisor, tenants, world } = setting
  const apiKey = tenants[plan.signer]?.key ?? ""
  const settings = settingsOf(setting, plan.signer)
  const to = await world.counter.getAddress()
  const nameOf = (place: number) => hashOf(`${scenario.seed} ${index} ${place}`)
  const works = plan.ops.map(({ deed, dependsOn = null }, place): Work => {
    const salt = saltsOf(scenario, plan, index)[place]
    const wallet = salt === undefined ? undefined : newcomers.get(salt)
    return {
      id: wallet ?? nameOf(place),
      kind: wallet === undefined ? "count" : "wallet",
      after: dependsOn === null ? null : nameOf(dependsOn),
      deed,
      request: index,
      said: "nothing",
      why: ""
    }
  })
  const violations: Array<string> = []
  const met: Array<string> = []
  const asked: Array<Asked> = []
  const question = (path: string, body: unknown, key: string | null): Question => ({
    path,
    apiKey,
    key,
    body,
    patience: plan.patience
  })
  const answerOf = async (what: Question) => {
    const trail = await ask(supervisor, what, calm, deadline)
    met.push(...trail.met.map((text) => `${what.path} ${text}`))
    if (trail.met.some((text) => text.startsWith("500")))
      violations.push(`request ${index} ${what.path}: 500`)
    const { answer } = trail
    if (answer === null) return null
    for (const found of trail.lookedUp)
      if (essence(found) !== essence(answer))
        violations.push(
          `request ${index} ${what.path}: looked up ${essence(found)}, then answered ${essence(answer)}`
        )
    return answer
  }
  const operations = works.map(({ deed, id }, place) => {
    const { dependsOn = null, wallet = 0 } = plan.ops[place] ?? {}
    return {
      salt: salts[wallet],
      walletCustody: 1,
      to,
      ...callOf(deed, gate, id),
      ...(dependsOn !== null && { dependsOn })
    }
  })

  /** The ops of an estimate: it sends nothing, so it repeats while nodes fail. */
  const estimated = async (body: unknown): Promise<ReadonlyArray<EstimatedOp> | null> => {
    for (;;) {
      const peaceful = calm()
      const answer = await answerOf(question("/estimateGas", body, null))
      if (answer === null) return null
      const { userOps = [] } = answer.body
      if (userOps.length > 0 || peaceful) return userOps
    }
  }

  /** The write, and the indexes of each piece of work in it. */
  const prepare = async (): Promise<{ body: unknown; places: ReadonlyArray<number> } | null> => {
    switch (plan.endpoint) {
      case "execute":
        return { body: { operations, settings }, places: works.map((_, place) => place) }
      case "create": {
        const accounts = saltsOf(scenario, plan, index).map((salt) => ({ salt, walletCustody: 1 }))
        return { body: { accounts, settings }, places: works.map((_, place) => place) }
      }
      case "transactSigner": {
        const { rpc, signer } = settings
        const [{ deed, id } = { deed: "hit" as const, id: "" }] = works
        return { body: { to, ...callOf(deed, gate, id), settings: { rpc, signer } }, places: [0] }
      }
      case "executeEncoded": {
        const userOps = await estimated({ operations, settings })
        if (userOps === null) return null
        if (userOps.length === 0) {
          for (const work of works) {
            work.said = "failure"
            work.why = "not estimated"
          }
          return null
        }
        return {
          body: {
            operations: userOps.map(({ encodedUserOp, userOpHash }) => ({
              encodedUserOp,
              userOpHash,
              walletCustody: 1
            })),
            settings
          },
          places: works.map((_, place) => userOps.findIndex(({ aggrIndexes }) => aggrIndexes.includes(place)))
        }
      }
    }
  }

  const prepared = await prepare()
  if (prepared === null) return { works, asked, violations, met }
  const write = question(`/${plan.endpoint}`, prepared.body, `${scenario.seed}-${index}`)
  const [answer, twin] = await Promise.all([
    answerOf({ ...write, isAsync: plan.isAsync }),
    plan.twin ? answerOf(write) : null
  ])
  if (answer === null) return { works, asked, violations, met }
  const hear = (said: Answer) => {
    works.forEach((work, at) => {
      const place = prepared.places[at] ?? -1
      ;[work.said, work.why] = place < 0 ? ["failure", "not estimated"] : saidOf(said, place)
    })
  }
  // Refusals are not stored: of two clients with one key the later one may still succeed, and its answer counts.
  hear(answer.status !== 200 && twin?.status === 200 ? twin : answer)
  asked.push({ question: write, answer, hear })
  if (twin !== null) asked.push({ question: write, answer: twin, hear })
  return { works, asked, violations, met }
}
