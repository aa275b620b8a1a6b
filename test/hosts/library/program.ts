import * as Http from "castellan/http"
import { posts } from "../../support/http/Contract.js"
import * as Configured from "../../support/web/Configured.js"

/** A program that exits once the service holds no more handles. */
const { config, key, remove } = Configured.make()
const { dispose, handler } = Http.toWebHandler(config)
const { status } = await handler(
  new Request("http://wallets.test/predict", {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": key },
    body: JSON.stringify(posts.find(({ name }) => name === "predict")?.example)
  })
)
await dispose()
remove()
process.stdout.write(`disposed after ${status}\n`)
