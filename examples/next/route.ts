import * as Http from "castellan/http"
import * as Result from "effect/Result"

/**
 * `app/wallets/[[...path]]/route.ts` of a Next app under `next start`, a long-running process. On hosts that freeze or
 * end functions after the answer, call a service that runs elsewhere (see ../README.md). `next.config.mjs` keeps
 * castellan out of Next's bundle.
 */

/** One process owns an EOA's lane: no edge runtime, and one service for all loads of this module. */
export const runtime = "nodejs"
export const dynamic = "force-dynamic"

const shared: { castellan?: Http.WebHandler } = globalThis as object

const service = (): Http.WebHandler => {
  if (shared.castellan !== undefined) return shared.castellan
  const config = Result.getOrThrowWith(Http.Config.load(process.env), (error) => error)
  const made = Http.toWebHandler(config, { basePath: "/wallets" })
  shared.castellan = made
  // With NEXT_MANUAL_SIG_HANDLE=true Next leaves the signal to the app.
  process.once("SIGTERM", () => void made.dispose().then(() => process.exit(0)))
  return made
}

export const GET = (request: Request): Promise<Response> => service().handler(request)
export const POST = GET
export const PATCH = GET
export const PUT = GET
export const DELETE = GET
export const OPTIONS = GET
