import * as http from "node:http"
import * as Port from "../process/Port.js"

/** A received request, unmodified. */
export interface Sent {
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

/** A receiver that accepts all webhooks. */
export interface Receiver {
  /** Its path acts as a secret. */
  readonly url: string
  readonly sent: Array<Sent>
  /** Waits until `look` finds a message. */
  readonly until: <A>(look: (sent: ReadonlyArray<Sent>) => A | undefined) => Promise<A>
  readonly stop: () => void
}

export const secretPath = "with-a-key-in-it"

export const start = async (): Promise<Receiver> => {
  const sent: Array<Sent> = []
  let wake: () => void = () => {}
  const server = http.createServer(async (request, response) => {
    let body = ""
    for await (const text of request.setEncoding("utf8")) body += text
    sent.push({ headers: request.headers as Record<string, string>, body })
    response.writeHead(204).end()
    wake()
  })
  const port = await Port.listen(server)
  return {
    url: `http://127.0.0.1:${port}/${secretPath}`,
    sent,
    until: async (look) => {
      for (;;) {
        const found = look(sent)
        if (found !== undefined) return found
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
    },
    stop: () => {
      server.closeAllConnections()
      server.close()
    }
  }
}
