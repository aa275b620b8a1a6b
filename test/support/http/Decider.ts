import * as http from "node:http"
import * as Redacted from "effect/Redacted"
import type { Hook } from "../../../src/application/policies/DecisionHook.js"
import * as Port from "../process/Port.js"

/** A question as the hook receives it. */
export interface Question {
  readonly headers: http.IncomingHttpHeaders
  readonly body: string
  readonly data: ReturnType<typeof JSON.parse>
}

type Answer = (response: http.ServerResponse, question: Question) => void

export const secret = `whsec_${Buffer.from("a secret of thirty-two bytes !!!").toString("base64")}`

export const json =
  (answer: unknown): Answer =>
  (response) =>
    void response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(answer))

/** The receiver of a decision hook, which allows everything until `behave` changes that. */
export const start = async () => {
  const asked: Array<Question> = []
  let answer = json({ decision: "allow" })
  const server = http.createServer(async (request, response) => {
    let body = ""
    for await (const text of request.setEncoding("utf8")) body += text
    const question = { headers: request.headers, body, data: JSON.parse(body).data }
    asked.push(question)
    answer(response, question)
  })
  const port = await Port.listen(server)
  const url = `http://127.0.0.1:${port}/decide`
  return {
    url,
    asked,
    hook: (more: Partial<Hook> = {}): Hook => ({
      url: Redacted.make(url),
      secret: Redacted.make(secret),
      timeoutMillis: 2_000,
      on: "all",
      ...more
    }),
    behave: (given: Answer) => {
      answer = given
    },
    stop: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}
