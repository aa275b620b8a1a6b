import * as Effect from "effect/Effect"
import type { ChainHealth, Reading } from "../../../application/observe/Health.js"
import * as Incidents from "../../../application/operate/Incidents.js"
import * as Series from "../../../application/operate/Series.js"
import type { Situation } from "../../../application/operate/Situation.js"
import * as Chains from "../Chains.js"
import type { Data, View } from "../Data.js"
import { type Html, html, type Part } from "../Html.js"
import * as Page from "../Page.js"
import * as Pauses from "./Pauses.js"
import * as Request from "./Request.js"
import { failed } from "./RequestList.js"
import { runbooks } from "./Runbooks.js"

const verdicts = {
  moving: ["ok", "Moving"],
  late: ["late", "Late"],
  partly: ["bad", "Partly stopped"],
  stopped: ["bad", "Stopped"]
} as const

export const statusOf = (chainId: bigint, { incidents }: Situation): Html => {
  const [tone, word] = verdicts[Incidents.verdictOf(chainId, incidents)]
  return Page.status(tone, word)
}

const names = (chainIds: ReadonlyArray<bigint>): string =>
  chainIds.map((chainId) => Chains.of(chainId).name).join(", ")

const some = (count: number, what: string): string => `${count} ${what}${count === 1 ? "" : "s"}`

/** Chains that the operator's node observes, or that have work. Without any, all. */
const observed = ({ chains, waiting }: Incidents.Facts): ReadonlyArray<ChainHealth> => {
  const some = chains.filter(
    ({ profile: { chainId, rpc } }) => rpc !== null || waiting.some((each) => each.chainId === chainId)
  )
  return some.length === 0 ? chains : some
}

/** Whether money moves, in a sentence; where not, why and what that means. */
const verdict = ({ endedAt, facts, incidents }: Situation): Html => {
  const all = observed(facts).map(({ profile: { chainId } }) => chainId)
  const of = (...states: ReadonlyArray<keyof typeof verdicts>) =>
    all.filter((chainId) => states.includes(Incidents.verdictOf(chainId, incidents)))
  const stuck = of("stopped", "partly")
  const late = of("late")
  const ops = facts.waiting.reduce((sum, each) => sum + each.ops, 0)
  const oldest = facts.waiting.reduce(
    (least, { oldestAt }) => Math.min(least, oldestAt ?? facts.now),
    facts.now
  )
  const waiting =
    ops === 0
      ? "No operation waits."
      : `${some(ops, "operation")} ${ops === 1 ? "waits" : "wait"}, the oldest for ${Page.age((facts.now - oldest) / 1_000)}; nothing is lost.`
  const [tone, icon, title] =
    stuck.length > 0
      ? (["t-bad", "bad", `Money is stuck on ${stuck.length} of ${all.length} chains`] as const)
      : late.length > 0
        ? (["t-part", "late", `Money is late on ${late.length} of ${all.length} chains`] as const)
        : ([
            "t-ok",
            "ok",
            `Money moves on ${all.length === 1 ? "the chain" : `all ${all.length} chains`}`
          ] as const)
  const sentences = [
    ...(of("stopped").length > 0 ? [`${names(of("stopped"))}: stopped.`] : []),
    ...(of("partly").length > 0 ? [`${names(of("partly"))}: partly stopped.`] : []),
    waiting,
    ...(stuck.length === 0 && endedAt !== null
      ? [`The last incident ended ${Page.age((facts.now - endedAt) / 1_000)} ago.`]
      : [])
  ]
  return html`<div id="verdict" data-live><div class="verdict">${Page.icon(icon, ` ${tone}`)}<div><h1>${title}</h1><p class="dim">${sentences.join(" ")}</p></div></div></div>`
}

const particulars = ({ chainId, figures, kind, level, subject }: Incidents.Incident): Part => {
  const amount = (name: string) => Page.coins(BigInt(figures[name] ?? 0), chainId ?? 0n)
  switch (kind) {
    case "node-silent":
      return html`The node's last error: ${String(figures.message)}.`
    case "node-behind":
      return html`Head block ${Page.count(BigInt(figures.head ?? 0))} is ${Page.age(Number(figures.age) / 1_000)} old.`
    case "fee-cap":
      return html`Base fee ${Page.gwei(BigInt(figures.baseFee ?? 0))}, cap ${Page.gwei(BigInt(figures.cap ?? 0))}.`
    case "eoa-empty":
    case "eoa-low":
      return html`${Page.address(subject, chainId)} has ${amount("balance")}; low below ${amount("bound")}.`
    case "sponsor-empty":
    case "sponsor-low":
      return html`Deposit ${amount("deposit")} at EntryPoint ${Page.address(subject, chainId)}.`
    case "transaction-stalled":
      return html`${some(Number(figures.transactions), "transaction")} of ${Page.laneLink(chainId, subject, "lane ")}, the oldest signed ${Page.age(Number(figures.age) / 1_000)} ago.`
    case "work-waits":
      return html`<a href="${Page.path}/requests?state=pending">${some(Number(figures.ops), "operation")}</a>, the oldest accepted ${Page.age(Number(figures.age) / 1_000)} ago.`
    case "request-held":
      return html`<a href="${Page.path}/requests/${subject}">Request ${subject}</a>.`
    case "budget-near":
      return html`Account ${subject} has used ${amount("spent")} of ${amount("limit")} today.`
    case "signer-fails":
      return html`Signer ${Page.address(subject)}, ${String(figures.failures)} failures in the last minute.`
    case "webhook-failing":
      return html`Webhook ${Page.code(subject)} of account ${String(figures.account)}.`
    case "database-fails":
      return html`${some(Number(figures.errors), "failed call")} in the last minute${level === "stops" ? "; no write succeeds" : ", but writes succeed"}.`
    case "clock-doubted":
      return figures.ahead === undefined
        ? null
        : html`This clock is ${Page.age(Math.abs(Number(figures.ahead)) / 1_000)} ${Number(figures.ahead) < 0 ? "behind" : "ahead of"} a chain's newest block.`
    case "rate-limit-store-gone":
      return null
  }
}

const incident = (view: View, each: Incidents.Standing, at: number): Html => {
  const { chainId, kind, level, since, subject } = each
  const { effect, remedy, title } = runbooks[kind]
  const [tone, icon] = level === "stops" ? (["bad", "bad"] as const) : (["part", "late"] as const)
  const where = chainId === null ? "" : `${Chains.of(chainId).name}: `
  const what = where === "" ? title : `${where}${title.charAt(0).toLowerCase()}${title.slice(1)}`
  const canPause =
    chainId !== null && level === "stops" && ["node-silent", "node-behind", "fee-cap"].includes(kind)
  return html`<li class="${tone}"><div><h3><span class="t-${tone}">${Page.icon(icon)} ${what}</span> <small>for ${Page.age((view.now - since) / 1_000)}, since ${Page.clock(since)} UTC</small></h3><dl><dt>Now</dt><dd>${particulars(each) ?? "It lasts."}</dd><dt>Effect</dt><dd>${Page.mark(effect)}</dd><dt>Do</dt><dd>${Page.mark(remedy)}</dd></dl></div><div class="acts">${kind === "request-held" ? Request.decide(view, subject) : null}${canPause ? Pauses.act(view, "pause", "chain", String(chainId), `i${at}`) : null}<a class="btn" href="${Page.path}/runbooks#${kind}">${Page.icon("book")}Runbook</a></div></li>`
}

/** Present while it is empty: the live refresh fills it. */
export const incidentList = (view: View, incidents: ReadonlyArray<Incidents.Standing>): Html =>
  html`<section aria-labelledby="inc-t"><h2 id="inc-t" class="unseen">Incidents</h2><ol class="inc" id="incidents" data-live>${incidents.map((each, at) => incident(view, each, at))}</ol></section>`

/** Runway of an EOA's balance at the measured cost. */
const runway = (
  samples: ReadonlyArray<Series.Sample>,
  chainId: bigint,
  address: string,
  { wei }: Reading
): Part => {
  const daily = Series.dailyGas(samples, chainId, address)
  return daily === null ? "cost not measured yet" : `≈ ${Page.age((86_400 * Number(wei)) / daily)}`
}

const chainRow = (
  health: ChainHealth,
  situation: Situation,
  day: ReadonlyArray<Series.Sample>,
  now: number
): ReadonlyArray<Part> => {
  const { answerMillis, eoas, failing, head, profile } = health
  const { caps, chainId, sponsor } = profile
  const { facts } = situation
  const small = (text: Part, tone = "") => html`<small class="${tone}">${text}</small>`
  const waiting = facts.waiting.find((each) => each.chainId === chainId)
  const isLate = waiting?.oldestAt != null && now - waiting.oldestAt > 60_000
  const poorest = [...eoas].sort(([, one], [, other]) => (one.wei < other.wei ? -1 : 1))[0]
  const deposit = [...health.deposits].sort(([, one], [, other]) => (one.wei < other.wei ? -1 : 1))[0]
  const budgets = facts.budgets.filter((each) => each.chainId === chainId)
  const most = [...budgets].sort((one, other) =>
    one.spent * other.limit > other.spent * one.limit ? -1 : 1
  )[0]
  const none = (text: string) => html`<span class="dim">${text}</span>`
  return [
    html`<a href="${Page.path}/chains/${chainId}"><b>${Chains.of(chainId).name}</b></a> ${statusOf(chainId, situation)}${small(`chain ${chainId}`)}`,
    profile.rpc === null
      ? none("callers' nodes only")
      : head === null
        ? none("not read yet")
        : html`#${Page.count(head.number)}${small(`${Page.age((now - head.timestamp * 1_000) / 1_000)} old`, situation.incidents.some((each) => each.chainId === chainId && each.kind === "node-behind") ? "t-bad" : "")}`,
    profile.rpc === null
      ? none("none")
      : failing !== null
        ? html`<span class="t-bad">no answer</span>${small(`${failing.polls} polls failed`)}`
        : answerMillis === null
          ? none("not asked yet")
          : html`${Math.round(answerMillis)} ms${small("answers")}`,
    head?.baseFeePerGas == null
      ? none("none")
      : html`${Page.gwei(head.baseFeePerGas)}${small(`cap ${Page.gwei(caps.maxFeePerGas)}`)}`,
    waiting === undefined || waiting.ops === 0
      ? html`0 ops${small("none waits")}`
      : html`<span class="${isLate ? "t-part" : ""}">${some(waiting.ops, "op")}</span>${small(`oldest ${Page.age((now - (waiting.oldestAt ?? now)) / 1_000)}`, isLate ? "t-part" : "")}`,
    poorest === undefined
      ? none("none used yet")
      : html`<span class="${poorest[1].wei === 0n ? "t-bad" : poorest[1].wei < health.lowBalance ? "t-part" : ""}">${Page.coins(poorest[1].wei, chainId)}</span>${small(runway(day, chainId, poorest[0], poorest[1]))}`,
    sponsor === null
      ? none("no sponsor")
      : deposit === undefined
        ? none("not read yet")
        : html`<span class="${deposit[1].wei === 0n ? "t-bad" : ""}">${Page.coins(deposit[1].wei, chainId)}</span>`,
    sponsor === null
      ? none("none set")
      : most === undefined
        ? html`0 of ${Page.coins(sponsor.dailyBudget, chainId)}`
        : html`${Page.coins(most.spent, chainId)} of ${Page.coins(most.limit, chainId)}${small(`account ${most.accountId}`)}${Page.meter(Number(most.spent) / Math.max(1, Number(most.limit)), "Budget used")}`
  ]
}

const tile = (title: string, value: Part, chart: Part, [left, right]: readonly [Part, Part]): Html =>
  html`<div class="box tile"><h3 class="dim">${title}</h3><p>${value}</p><figure>${chart}<figcaption><span>${left}</span><span>${right}</span></figcaption></figure></div>`

const opsOf = (before: Series.Sample, after: Series.Sample) => ({
  all: after.succeeded + after.failed - before.succeeded - before.failed,
  failed: after.failed - before.failed
})

const seconds = (value: number | null): string =>
  value === null ? "–" : `${value < 10 ? value.toFixed(1) : Math.round(value)} s`

const tiles = (hour: ReadonlyArray<Series.Sample>, day: ReadonlyArray<Series.Sample>): Html => {
  const [first, last] = [hour.at(0), hour.at(-1)]
  if (first === undefined || last === undefined) return html``
  const minutes = Math.max(1, (last.at - first.at) / 60_000)
  const whole = opsOf(first, last)
  const each = Series.steps(hour, opsOf)
  const share = whole.all === 0 ? null : 1 - whole.failed / whole.all
  const left = `${Page.age((last.at - first.at) / 1_000)} ago`
  const quantiles = (part: number) =>
    Series.steps(hour, (before, after) => Series.percentile(before, after, part))
  const dayOps = Series.steps(day, opsOf)
  const dayWhole = opsOf(day[0] ?? first, last)
  return html`<div class="tiles" id="tiles" data-live>
${tile(
  "Operations, last hour",
  html`<b>${(whole.all / minutes).toFixed(1)}</b> a minute`,
  Page.line(
    each.map(({ all }) => all),
    `Operations a minute over the last hour: ${whole.all} in all`
  ),
  [left, "now"]
)}
${tile(
  "Succeeded, last hour",
  share === null
    ? html`<b>–</b> no operation`
    : html`<b class="${share < 0.98 ? "t-part" : ""}">${(100 * share).toFixed(1)} %</b> of ${Page.count(whole.all)}`,
  Page.line(
    each.map(({ all, failed }) => (all === 0 ? null : 100 - (100 * failed) / all)),
    "Share of operations that succeeded, by minute",
    false,
    100
  ),
  ["0 to 100 %", "now"]
)}
${tile("Accepted to included", html`<b>${seconds(Series.percentile(first, last, 0.5))}</b> <span class="dim">p50</span> · ${seconds(Series.percentile(first, last, 0.99))} <span class="dim">p99</span>`, Page.line(quantiles(0.99), "Seconds from acceptance to inclusion, 99th percentile by minute"), ["p99, last hour", "now"])}
${tile("Last day", html`<b>${Page.count(dayWhole.all)}</b> operations`, Page.bars(dayOps, `Operations by hour: ${dayWhole.all}, ${dayWhole.failed} failed`), ["by hour, failed in red", "now"])}
</div>`
}

export const overview = (data: Data, view: View): Effect.Effect<Html> =>
  Effect.gen(function* () {
    const situation = data.observer.situation()
    const [hour, day] = [yield* data.observer.series.hour, yield* data.observer.series.day]
    const failures = yield* data.failures
    const rows = observed(situation.facts)
    const others = situation.facts.chains.filter((each) => !rows.includes(each))
    return html`${verdict(situation)}
${incidentList(view, situation.incidents)}
${Page.box(
  "Chains",
  html`${Page.table(
    "Health of each chain",
    ["Chain", "Head", "Node", "Base fee", "Waiting", "Submitting EOA", "Sponsor deposit", "Budget today"],
    rows.map((health) => chainRow(health, situation, day, view.now)),
    "The configuration has no network.",
    "tight"
  )}${
    others.length === 0
      ? null
      : html`<p class="in dim">By callers' nodes only, and without work: ${others.map(({ profile: { chainId } }, at) => html`${at === 0 ? "" : ", "}<a href="${Page.path}/chains/${chainId}">${Chains.of(chainId).name}</a>`)}.</p>`
  }`,
  html`<small>runway: at the gas paid since this process started, 24 hours at most</small>`,
  true
)}
<section aria-labelledby="tp-t"><h2 id="tp-t" class="unseen">Throughput</h2>${tiles(hour, day)}</section>
${Page.box(
  "Recent failures",
  failed(failures, view.now),
  html`<a href="${Page.path}/requests?state=failed">Requests that failed</a>`,
  true
)}`
  })
