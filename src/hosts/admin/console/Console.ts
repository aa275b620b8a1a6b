import { timingSafeEqual } from "node:crypto"
import { readFileSync } from "node:fs"
import * as ByteSize from "effect/ByteSize"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Cookies from "effect/http/Cookies"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Result from "effect/Result"
import type { Lane } from "../../../application/ports/journal/Transactions.js"
import type { Pause } from "../../../application/ports/TenantStore.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Accounts from "./Accounts.js"
import type { Data, Missing, View } from "./Data.js"
import { type Html, html } from "./Html.js"
import * as NonceLanes from "./NonceLanes.js"
import * as Overview from "./Overview.js"
import * as Page from "./Page.js"
import * as Records from "./Records.js"
import * as Requests from "./Requests.js"
import * as Sessions from "./Sessions.js"
import * as Webhooks from "./Webhooks.js"

/** The operator's console: rendered on the server, without scripts, behind the operator's token. */

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

export type App = Effect.Effect<Response, never, Request>

const policy =
  "default-src 'none'; style-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const answer = (status: number, text: string): Response =>
  HttpServerResponse.text(text, { status, contentType: "text/html; charset=utf-8" })

const seeOther = (path: string): Response =>
  HttpServerResponse.empty({ status: 303, headers: { location: `${Page.path}${path}` } })

let kept: string | undefined

const style = (): Response => {
  kept ??= readFileSync(new URL("style.css", import.meta.url), "utf8")
  return HttpServerResponse.text(kept, { contentType: "text/css" })
}

const maxFormBytes = ByteSize.bytes(8_192)

const cookieOptions: Cookies.Cookie["options"] = { httpOnly: true, sameSite: "strict", path: Page.path }

const withCookie = (response: Response, value: string, maxAge: number): Response =>
  HttpServerResponse.setCookieUnsafe(response, Sessions.cookieName, value, {
    ...cookieOptions,
    maxAge: `${maxAge} seconds`
  })

const signInPage = (status: number, problem: string | null): Response =>
  answer(
    status,
    Page.page(
      { title: "Sign in", section: null, formToken: "" },
      html`${problem === null ? null : Page.problem(problem)}
<form class="inline" method="post" action="${Page.path}/sign-in">
<div><label for="token">The operator's token (<code>admin.token</code>)</label><input id="token" name="token" type="password" autocomplete="current-password" required autofocus size="40"></div>
<button>Sign in</button>
</form>`
    )
  )

/** Accepts forms only from pages of this port, by the browser's headers. */
const isForeign = ({ headers }: Request): boolean => {
  const { host = "", origin } = headers
  const site = headers["sec-fetch-site"]
  return (
    (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) ||
    (site !== undefined && site !== "same-origin" && site !== "none")
  )
}

const laneOf = (chain: string, signer: string): Lane | null => {
  const address = Address.from(signer)
  return /^[1-9][0-9]{0,15}$/.test(chain) && Result.isSuccess(address)
    ? { chainId: BigInt(chain), signer: address.success }
    : null
}

interface Shown {
  readonly title: string
  readonly section: Page.Section
  readonly content: Effect.Effect<Html, Missing>
}

const contents: Readonly<Record<Page.Section, (data: Data, view: View) => Shown["content"]>> = {
  "": Overview.overview,
  "/lanes": NonceLanes.lanes,
  "/requests": Requests.requests,
  "/accounts": Accounts.accounts,
  "/webhooks": Webhooks.webhooks,
  "/budgets": Records.budgets,
  "/audit": Records.audit
}

/** The page at a path; null when there is none. */
const pageAt = (data: Data, view: View, path: string): Shown | null => {
  const [, first = "", second, third, ...rest] = path.split("/")
  const [section, title] = Page.sections.find(([at]) => at === (first === "" ? "" : `/${first}`)) ?? []
  if (rest.length > 0 || section === undefined) return null
  if (section === "" || second === undefined)
    return { title, section, content: contents[section](data, view) }
  if (section === "/requests" && third === undefined)
    return { title: "Request", section, content: Requests.request(data, view, second) }
  const lane = laneOf(second, third ?? "")
  return section === "/lanes" && lane !== null
    ? { title: "Lane", section, content: NonceLanes.lane(data, view, lane) }
    : null
}

const kinds: ReadonlyArray<string> = ["account", "signer", "chain"] satisfies ReadonlyArray<Pause["kind"]>

const isKind = (text: string): text is Pause["kind"] => kinds.includes(text)

/** Confirmation shown after an action. */
const done: ReadonlyMap<string, string> = new Map([
  ["paused", "Paused: from the next second on nothing is accepted for it, by any process."],
  ["resumed", "Resumed."]
])

const render = (view: View, { content, section, title }: Shown): Effect.Effect<Response> =>
  Effect.match(content, {
    onFailure: ({ message, status = 503 }) =>
      answer(status, Page.page({ title, section, formToken: view.formToken }, Page.problem(message))),
    onSuccess: (shown) => {
      const said = done.get(view.query.get("done") ?? "") ?? ""
      return answer(200, Page.page({ title, section, formToken: view.formToken, said }, shown))
    }
  })

const unknown = (view: View): Response =>
  answer(
    404,
    Page.page(
      { title: "No such page", section: "", formToken: view.formToken },
      html`<p><a href="${Page.path}">Overview</a></p>`
    )
  )

/** Runs a signed-in operator's form. */
const act = (data: Data, view: View, path: string, form: URLSearchParams): Effect.Effect<Response> => {
  const wrong = (what: string) =>
    answer(400, Page.page({ title: "Not done", section: "", formToken: view.formToken }, Page.problem(what)))
  switch (path) {
    case "/pause":
    case "/resume": {
      const kind = form.get("kind") ?? ""
      const subject = form.get("subject") ?? ""
      if (!isKind(kind) || subject === "") return Effect.succeed(wrong("kind, subject: not of this console"))
      const done =
        path === "/pause"
          ? data.tenants.pause({ kind, subject, since: view.now })
          : data.tenants.resume(kind, subject)
      return Effect.match(done, {
        onFailure: ({ message }) => wrong(message),
        onSuccess: () => seeOther(`/accounts?done=${path === "/pause" ? "paused" : "resumed"}`)
      })
    }
    case "/unstick": {
      const lane = laneOf(form.get("chain") ?? "", form.get("signer") ?? "")
      if (lane === null) return Effect.succeed(wrong("chain, signer: not of this console"))
      // A dry run unless dryRun=false.
      const dryRun = form.get("dryRun") !== "false"
      return render(view, {
        title: dryRun ? "New prices: dry run" : "New prices",
        section: "/lanes",
        content: NonceLanes.unstuck(data, view, lane, dryRun)
      })
    }
    default:
      return Effect.succeed(unknown(view))
  }
}

const same = (one: string, other: string): boolean => {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/** `isOperator` compares tokens in constant time. */
export const app = (data: Data, isOperator: (token: string) => boolean): App => {
  const sessions = Sessions.make()

  const form = (request: Request): Effect.Effect<URLSearchParams | null> =>
    request.text.pipe(
      Effect.provideService(HttpIncomingMessage.MaxBodySize, maxFormBytes),
      Effect.map((text) => new URLSearchParams(text)),
      Effect.orElseSucceed(() => null)
    )

  const signIn = (fields: URLSearchParams, now: number): Response => {
    if (!sessions.mayTry(now)) return signInPage(429, "Too many tries: wait a minute.")
    return isOperator(fields.get("token") ?? "")
      ? withCookie(seeOther(""), sessions.begin(now), Sessions.life)
      : signInPage(401, "This is not the operator's token.")
  }

  const posted = (request: Request, path: string, query: URLSearchParams, now: number) =>
    Effect.gen(function* () {
      if (isForeign(request)) return answer(403, "not for pages of other sites\n")
      // Rejects a long form by its Content-Length, without reading it.
      const length = Number(request.headers["content-length"] ?? "NaN")
      const fields = length <= maxFormBytes ? yield* form(request) : null
      if (fields === null) return answer(413, "the form is too long\n")
      if (path === "/sign-in") return signIn(fields, now)
      const secret = request.cookies[Sessions.cookieName] ?? ""
      const session = sessions.find(secret, now)
      if (session === null) return signInPage(401, "You are not signed in any more.")
      if (!same(fields.get("formToken") ?? "", session.formToken))
        return answer(403, "the form is not of this session\n")
      if (path === "/sign-out") {
        sessions.end(secret)
        return withCookie(seeOther(""), "", 0)
      }
      return yield* act(data, { formToken: session.formToken, query, now }, path, fields)
    })

  return Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const now = yield* Clock.currentTimeMillis
    const { pathname, searchParams: query } = new URL(request.url, "http://admin.invalid")
    if (pathname === "/") return seeOther("")
    const path = pathname.slice(Page.path.length).replace(/\/$/, "")
    if (request.method === "POST") return yield* posted(request, path, query, now)
    if (request.method !== "GET" && request.method !== "HEAD")
      return HttpServerResponse.setHeader(answer(405, "expected GET or POST\n"), "allow", "GET, HEAD, POST")
    if (path === "/style.css") return style()
    const session = sessions.find(request.cookies[Sessions.cookieName] ?? "", now)
    if (session === null) return signInPage(path === "" ? 200 : 401, null)
    const view = { formToken: session.formToken, query, now }
    const shown = pageAt(data, view, path)
    return shown === null ? unknown(view) : yield* render(view, shown)
  }).pipe(
    Effect.map(
      HttpServerResponse.setHeaders({
        "content-security-policy": policy,
        "referrer-policy": "same-origin",
        "x-frame-options": "DENY"
      })
    )
  )
}
