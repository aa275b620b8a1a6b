import * as Http from "castellan/http"
import * as Either from "effect/Either"

const config = Either.getOrThrowWith(Http.Config.load(process.env), (error) => error)
const { dispose, handler, ready } = Http.toWebHandler(config, { basePath: "/wallets" })

export { dispose, handler, ready }
