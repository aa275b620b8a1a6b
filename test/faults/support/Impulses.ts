import { ask, exchange, type Question } from "./Client.js"
import type { Impulse } from "./Scenario.js"
import { type Setting, settingsOf } from "./Workload.js"

/** Results of the acts of impatient tenants. */
export interface Impulses {
  readonly play: (impulse: Impulse, index: number) => Promise<void>
  /** Repeats each act after the run; returns the contradictions to its first answer. */
  readonly judge: () => Promise<ReadonlyArray<string>>
  readonly done: () => ReadonlyMap<string, number>
}

interface Cancellation {
  readonly question: Question
  readonly requestId: string
  /** Indexes of the elements that will never be sent. */
  readonly cancelled: ReadonlyArray<number>
}

interface Listed {
  readonly requestId: string
  readonly endpoint: string
}

export const make = (setting: Setting): Impulses => {
  const { calm, deadline, scenario, supervisor, tenants } = setting
  const done = new Map<string, number>()
  const count = (what: string, by = 1) => done.set(what, (done.get(what) ?? 0) + by)
  const wrong: Array<string> = []
  const cancellations: Array<Cancellation> = []

  const unstick = async (signer: number, index: number) => {
    const { rpc, signer: name } = settingsOf(setting, signer)
    const trail = await ask(
      supervisor,
      {
        path: "/unstuck",
        apiKey: tenants[signer]?.key ?? "",
        key: `${scenario.seed}-unstuck-${index}`,
        body: { settings: { rpc, signer: name } },
        patience: 20_000
      },
      calm,
      deadline
    )
    if (trail.answer === null) wrong.push(`/unstuck ${index} never had an answer: ${trail.met.join(", ")}`)
    if (trail.met.some((text) => text.startsWith("500"))) wrong.push(`/unstuck ${index}: 500`)
    count(`/unstuck answered ${trail.answer?.status}`)
  }

  const known = new Set<string>()
  /** Polls for a while: accepted requests are signed soon. */
  const cancel = async (signer: number) => {
    for (let turn = 0; turn < 30; turn += 1) {
      await cancelOpen(signer)
      await new Promise((resolve) => setTimeout(resolve, 25))
    }
  }

  const cancelOpen = async (signer: number) => {
    const question = (path: string): Question => ({
      path,
      apiKey: tenants[signer]?.key ?? "",
      key: null,
      body: null,
      patience: 5_000
    })
    const list = await exchange(supervisor, question("/requests?state=pending&limit=100"), "GET")
    const { requests = [] } = (list?.body ?? {}) as { readonly requests?: ReadonlyArray<Listed> }
    for (const { requestId, endpoint } of requests) {
      if (known.has(requestId) || endpoint === "/unstuck") continue
      known.add(requestId)
      if (known.size % 2 === 0) continue
      const one = question(`/requests/${requestId}`)
      const answer = await exchange(supervisor, one, "DELETE")
      if (answer?.status !== 200) known.delete(requestId)
      if (answer === null) continue
      if (answer.status === 500) wrong.push(`DELETE /requests/${requestId}: 500`)
      if (answer.status !== 200) continue
      const { cancelled } = answer.body as unknown as Pick<Cancellation, "cancelled">
      count("elements cancelled", cancelled.length)
      cancellations.push({ question: one, requestId, cancelled })
    }
  }

  const check = async ({ cancelled, question, requestId }: Cancellation): Promise<ReadonlyArray<string>> => {
    for (let turn = 0; turn < 10; turn += 1) {
      const found = await exchange(supervisor, { ...question, patience: 20_000 }, "GET")
      const { answer } = found?.body ?? {}
      if (found?.status !== 200 || answer === undefined || answer === null) {
        await new Promise((resolve) => setTimeout(resolve, 500))
        continue
      }
      if (answer.code === "request_cancelled") return []
      return cancelled.flatMap((place) => {
        const element = answer.returnData?.[place]?.[place]
        return element?.success === true || element?.error === undefined
          ? [`${requestId}: element ${place} was cancelled, and is ${JSON.stringify(element)}`]
          : []
      })
    }
    return [`${requestId}: cancelled, and without a final answer`]
  }

  return {
    play: ({ signer, what }, index) => (what === "unstick" ? unstick(signer, index) : cancel(signer)),
    judge: async () => [...wrong, ...(await Promise.all(cancellations.map(check))).flat()],
    done: () => done
  }
}
