import * as Http from "castellan/http"
import * as Result from "effect/Result"

/**
 * `app/wallets/[[...path]]/route.ts` of a Next app that `next start` runs: a process that stays. Where functions freeze
 * or end after their answer, call a service that runs elsewhere (README.md beside the examples). `next.config.mjs`
 * beside this file leaves castellan out of Next's bundle.
 */

/** The lanes of an EOA are one process's: not on the edge, and not made again when the module is loaded again. */
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
export const DELETE = GET
export const OPTIONS = GET
