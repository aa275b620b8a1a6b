import * as Http from "castellan/http"
import * as Result from "effect/Result"

const config = Result.getOrThrowWith(Http.Config.load(process.env), (error) => error)
const { dispose, handler, ready } = Http.toWebHandler(config, { basePath: "/wallets" })

export { dispose, handler, ready }
