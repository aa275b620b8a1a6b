import { timingSafeEqual } from "node:crypto"
import { readFileSync } from "node:fs"
import * as ByteSize from "effect/ByteSize"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import type * as Cookies from "effect/http/Cookies"
import * as HttpIncomingMessage from "effect/http/HttpIncomingMessage"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Acts from "./Acts.js"
import type { Data, Missing, View } from "./Data.js"
import { type Html, html } from "./Html.js"
import * as Page from "./Page.js"
import * as Accounts from "./pages/Accounts.js"
import * as Chain from "./pages/Chain.js"
import * as Lanes from "./pages/Lanes.js"
import * as Overview from "./pages/Overview.js"
import * as Pauses from "./pages/Pauses.js"
import * as Records from "./pages/Records.js"
import * as Request from "./pages/Request.js"
import * as RequestList from "./pages/RequestList.js"
import * as Runbooks from "./pages/Runbooks.js"
import * as Webhooks from "./pages/Webhooks.js"
import * as Sessions from "./Sessions.js"

/** The operator's console: rendered on the server, whole without its script, behind an operator's token. */

type Response = HttpServerResponse.HttpServerResponse

export type App = Effect.Effect<Response, never, HttpServerRequest.HttpServerRequest>

const policy =
  "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

const answer = (status: number, text: string): Response =>
  HttpServerResponse.text(text, { status, contentType: "text/html; charset=utf-8" })

const seeOther = (path: string): Response =>
  HttpServerResponse.empty({ status: 303, headers: { location: `${Page.path}${path}` } })

const files = new Map([
  ["/style.css", "text/css"],
  ["/script.js", "text/javascript"]
])

const kept = new Map<string, string>()

/** A style sheet without the spaces that only its readers need. */
const compact = (css: string): string =>
  css
    .replace(/\s+/g, " ")
    .replace(/ ?([{};,]) ?/g, "$1")
    .replaceAll(": ", ":")
    .replaceAll(";}", "}")

const file = (path: string, contentType: string): Response => {
  const text = kept.get(path) ?? readFileSync(new URL(`.${path}`, import.meta.url), "utf8")
  const sent = contentType === "text/css" ? compact(text) : text
  kept.set(path, sent)
  return HttpServerResponse.text(sent, { contentType })
}

const maxFormBytes = ByteSize.bytes(8_192)

const cookieOptions: Cookies.Cookie["options"] = { httpOnly: true, sameSite: "strict", path: Page.path }

const withCookie = (response: Response, value: string, maxAge: number): Response =>
  HttpServerResponse.setCookieUnsafe(response, Sessions.cookieName, value, {
    ...cookieOptions,
    maxAge: `${maxAge} seconds`
  })

const signInPage = (status: number, problem: string | null, now: number): Response =>
  answer(
    status,
    Page.page(
      { title: "Sign in", section: null, formToken: "", now },
      html`${problem === null ? null : Page.problem(problem)}
${Page.head("Sign in")}
<form class="filters" method="post" action="${Page.path}/sign-in">
<div><label for="token">Your operator's token (<code>admin.operators</code> or <code>admin.token</code>)</label><input id="token" name="token" type="password" autocomplete="current-password" required autofocus size="40"></div>
<button class="go">Sign in</button>
</form>`
    )
  )

/** Accepts forms only from pages of this port, by the browser's headers. */
const isForeign = ({ headers }: HttpServerRequest.HttpServerRequest): boolean => {
  const { host = "", origin } = headers
  const site = headers["sec-fetch-site"]
  return (
    (origin !== undefined && origin !== `http://${host}` && origin !== `https://${host}`) ||
    (site !== undefined && site !== "same-origin" && site !== "none")
  )
}

interface Shown {
  readonly title: string
  readonly section: Page.Section
  readonly content: Effect.Effect<Html, Missing>
}

const contents: Readonly<Record<Page.Section, (data: Data, view: View) => Shown["content"]>> = {
  "": Overview.overview,
  "/requests": RequestList.requests,
  "/lanes": Lanes.lanes,
  "/rules": Pauses.rules,
  "/accounts": Accounts.accounts,
  "/webhooks": Webhooks.webhooks,
  "/audit": Records.audit
}

/** The page at a path; null when there is none. */
const pageAt = (data: Data, view: View, path: string): Shown | null => {
  const [, first = "", second, third, ...rest] = path.split("/")
  if (rest.length > 0) return null
  if (second === undefined) {
    if (first === "search")
      return { title: "Search", section: "/requests", content: RequestList.search(data, view) }
    if (first === "runbooks")
      return { title: "Runbooks", section: "", content: Effect.succeed(Runbooks.page) }
  }
  const [section, title] = Page.sections.find(([at]) => at === (first === "" ? "" : `/${first}`)) ?? []
  if (section !== undefined && (section === "" || second === undefined))
    return { title, section, content: contents[section](data, view) }
  if (second === undefined) return null
  if (first === "requests" && third === undefined)
    return { title: "Request", section: "/requests", content: Request.request(data, view, second) }
  if (first === "chains" && third === undefined && /^[1-9][0-9]{0,15}$/.test(second))
    return { title: "Chain", section: "", content: Chain.chain(data, view, BigInt(second)) }
  const lane = first === "lanes" ? Lanes.laneOf(second, third ?? "") : null
  return lane === null ? null : { title: "Lane", section: "/lanes", content: Lanes.lane(data, view, lane) }
}

const frameOf = (
  data: Data,
  { formToken, now, operator, query }: View,
  title: string,
  section: Page.Section
): Page.Frame => ({
  title,
  section,
  formToken,
  operator,
  now,
  waiting: data.observer.situation().facts.waiting.reduce((sum, { ops }) => sum + ops, 0),
  search: query.get("q") ?? "",
  said: Acts.confirmations.get(query.get("done") ?? "") ?? ""
})

const render = (data: Data, view: View, { content, section, title }: Shown): Effect.Effect<Response> =>
  Effect.match(content, {
    onFailure: ({ message, status = 503 }) =>
      answer(status, Page.page(frameOf(data, view, title, section), Page.problem(message))),
    onSuccess: (shown) => answer(200, Page.page(frameOf(data, view, title, section), shown))
  })

const unknown = (data: Data, view: View): Response =>
  answer(
    404,
    Page.page(
      frameOf(data, view, "No such page", ""),
      html`${Page.head("No such page")}<p><a href="${Page.path}">Overview</a></p>`
    )
  )

const act = (data: Data, view: View, path: string, form: URLSearchParams): Effect.Effect<Response> => {
  const wrong = ({ message }: { readonly message: string }) =>
    answer(400, Page.page(frameOf(data, view, "Not done", ""), Page.problem(message)))
  if (path === "/unstick")
    return Effect.matchEffect(Acts.unstick(data, view, form), {
      onFailure: (why) => Effect.succeed(wrong(why)),
      onSuccess: ({ dryRun, lane }) =>
        render(data, view, {
          title: dryRun ? "New prices: dry run" : "New prices",
          section: "/lanes",
          content: Lanes.unstuck(data, view, lane, dryRun)
        })
    })
  const task = Acts.run(data, view, path, form)
  return task === null
    ? Effect.succeed(unknown(data, view))
    : Effect.match(task, {
        onFailure: wrong,
        onSuccess: ({ path, said }) => seeOther(`${path}?done=${said}`)
      })
}

const same = (one: string, other: string): boolean => {
  const [left, right] = [Buffer.from(one), Buffer.from(other)]
  return left.length === right.length && timingSafeEqual(left, right)
}

/**
 * `operatorOf`: the name of the operator with this token, compared in constant time; null: unknown token. `linked`: a link
 * with the token signs in, in development only.
 */
export const app = (data: Data, operatorOf: (token: string) => string | null, linked: boolean): App => {
  const sessions = Sessions.make()

  const form = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<URLSearchParams | null> =>
    request.text.pipe(
      Effect.provideService(HttpIncomingMessage.MaxBodySize, maxFormBytes),
      Effect.map((text) => new URLSearchParams(text)),
      Effect.orElseSucceed(() => null)
    )

  const signIn = (fields: URLSearchParams, now: number): Response => {
    if (!sessions.mayTry(now)) return signInPage(429, "Too many tries: wait a minute.", now)
    const operator = operatorOf(fields.get("token") ?? "")
    return operator === null
      ? signInPage(401, "No operator has this token.", now)
      : withCookie(seeOther(""), sessions.begin(operator, now), Sessions.life)
  }

  const posted = (
    request: HttpServerRequest.HttpServerRequest,
    path: string,
    query: URLSearchParams,
    now: number
  ) =>
    Effect.gen(function* () {
      if (isForeign(request)) return answer(403, "not for pages of other sites\n")
      // Rejects a long form by its Content-Length, without reading it.
      const length = Number(request.headers["content-length"] ?? "NaN")
      const fields = length <= maxFormBytes ? yield* form(request) : null
      if (fields === null) return answer(413, "the form is too long\n")
      if (path === "/sign-in") return signIn(fields, now)
      const secret = request.cookies[Sessions.cookieName] ?? ""
      const session = sessions.find(secret, now)
      if (session === null) return signInPage(401, "You are not signed in any more.", now)
      if (!same(fields.get("formToken") ?? "", session.formToken))
        return answer(403, "the form is not of this session\n")
      if (path === "/sign-out") {
        sessions.end(secret)
        return withCookie(seeOther(""), "", 0)
      }
      const { formToken, operator } = session
      return yield* act(data, { formToken, operator, query, now }, path, fields)
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
    const contentType = files.get(path)
    if (contentType !== undefined) return file(path, contentType)
    if (linked && path === "/sign-in" && query.has("token"))
      return isForeign(request) ? signInPage(401, null, now) : signIn(query, now)
    const session = sessions.find(request.cookies[Sessions.cookieName] ?? "", now)
    if (session === null) return signInPage(path === "" ? 200 : 401, null, now)
    const view = { formToken: session.formToken, operator: session.operator, query, now }
    const shown = pageAt(data, view, path)
    return shown === null ? unknown(data, view) : yield* render(data, view, shown)
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
