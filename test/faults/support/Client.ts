import type { Supervisor } from "./Supervisor.js"

export interface Answer {
  readonly status: number
  readonly body: Body
}

/** The fields of an answer's body that the campaign reads. */
export interface Body {
  readonly status?: number
  readonly error?: string
  readonly code?: string
  readonly requestId?: string
  readonly txHash?: string
  readonly returnData?: ReadonlyArray<Readonly<Record<string, Element>>>
  readonly details?: unknown
  readonly userOps?: ReadonlyArray<EstimatedOp>
  /** Present in the reply of `GET /requests/{requestId}`. */
  readonly httpStatus?: number | null
  readonly answer?: Body | null
}

export interface EstimatedOp {
  readonly encodedUserOp: string
  readonly userOpHash: string
  readonly aggrIndexes: ReadonlyArray<number>
}

export interface Element {
  readonly success?: boolean
  readonly error?: string | null
  readonly wallet?: string
}

export interface Question {
  readonly path: string
  readonly apiKey: string
  /** The Idempotency-Key; null for reads. */
  readonly key: string | null
  readonly body: unknown
  /** The client does not wait for its writes (`Prefer: respond-async`), but looks the request up. */
  readonly isAsync?: boolean
  /** Milliseconds until the client hangs up and repeats the request. */
  readonly patience: number
}

/** A client's experience; `answer` is null when its time was over. */
export interface Trail {
  readonly answer: Answer | null
  /** Final reply of `GET /requests/{requestId}` for a request whose outcome was unknown. */
  readonly lookedUp: ReadonlyArray<Answer>
  /** Status and code of all earlier answers. */
  readonly met: ReadonlyArray<string>
}

/** Answers that are not final: the client repeats the request with the same key. */
const passing = new Set(["outcome_unknown", "invalid_rpc", "node_refused", "wallet_busy", "fees_above_cap"])

const isFinal = ({ body, status }: Answer): boolean =>
  status === 200 || (status < 500 && status !== 429 && !passing.has(body.code ?? ""))

/** Times that calm must repeat a temporary refusal before it counts as the answer. */
const refusalsInCalm = 6

const pause = (millis: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, millis))

/** One HTTP exchange; null when there was no answer. */
export const exchange = async (
  supervisor: Supervisor,
  { apiKey, body, isAsync = false, key, patience, path }: Question,
  method = "POST"
): Promise<Answer | null> => {
  const url = await supervisor.url()
  try {
    const response = await fetch(url + path, {
      method,
      headers: {
        "x-api-key": apiKey,
        ...(method === "POST" && { "content-type": "application/json" }),
        ...(key !== null && { "idempotency-key": key }),
        ...(isAsync && { prefer: "respond-async" })
      },
      ...(method === "POST" && { body: JSON.stringify(body) }),
      signal: AbortSignal.timeout(patience)
    })
    return { status: response.status, body: JSON.parse(await response.text()) }
  } catch {
    return null
  }
}

/** The parts of an answer that no longer change once it is final. */
export const essence = ({ body, status }: Answer): string =>
  JSON.stringify([
    status,
    body.code ?? null,
    body.status ?? null,
    (body.returnData ?? []).map((element) =>
      Object.values(element).map(({ error, success }) => success ?? error === undefined)
    )
  ])

/** The answer that `GET /requests/{requestId}` returns, once final; an accepted request must be found. */
const settled = ({ body, status }: Answer): ReadonlyArray<Answer> => {
  if (status !== 200) return status < 500 && status !== 429 ? [{ status, body }] : []
  const { answer, httpStatus } = body
  return answer === undefined || answer === null ? [] : [{ status: httpStatus ?? 0, body: answer }]
}

const accepted = 202

/** State of an accepted request, read from its endpoint within some seconds. */
const lookUp = async (supervisor: Supervisor, question: Question, requestId: string, seconds: number) => {
  const path = `/requests/${requestId}${seconds === 0 ? "" : `?wait=${seconds}`}`
  const patience = Math.max(question.patience, seconds * 2_000)
  const found = await exchange(supervisor, { ...question, key: null, isAsync: false, path, patience }, "GET")
  return found === null ? [] : settled(found)
}

/**
 * Asks until there is a final answer, as a careful client does: again with the same key after a lost connection or a
 * temporary refusal. After an unknown outcome it looks the request up as well. `calm`: whether node and service are
 * free of faults. Gives up when `deadline` (Unix milliseconds) has passed.
 */
export const ask = async (
  supervisor: Supervisor,
  question: Question,
  calm: () => boolean,
  deadline: () => number
): Promise<Trail> => {
  const lookedUp: Array<Answer> = []
  const met: Array<string> = []
  let refused = 0
  let patience = question.patience
  while (Date.now() < deadline()) {
    const said = await exchange(supervisor, { ...question, patience })
    const [answer = null] =
      said?.status === accepted ? await lookUp(supervisor, question, String(said.body.requestId), 5) : [said]
    if (said?.status === accepted) met.push(answer === null ? "202" : "202, followed to its end")
    if (answer === null && said !== null) continue
    if (answer === null) {
      met.push("no answer")
      // A client that hangs up too early would never receive the outcome.
      patience = Math.min(20_000, patience * 2)
    } else {
      const unknown = answer.body.code === "outcome_unknown"
      if (calm() && !unknown) refused += 1
      if (isFinal(answer) || (answer.status === 422 && refused >= refusalsInCalm))
        return { answer, lookedUp, met }
      met.push(`${answer.status} ${answer.body.code ?? ""}`)
      if (unknown && answer.body.requestId !== undefined) {
        lookedUp.push(...(await lookUp(supervisor, question, answer.body.requestId, 0)))
      }
    }
    await pause(100)
  }
  return { answer: null, lookedUp, met }
}
