import * as TopUps from "../../application/topups/TopUps.js"
import { version } from "../Packages.js"
import * as Chains from "./Chains.js"
import { Html, html, type Part } from "./Html.js"

/** The frame and the parts of every page. The policy allows only this port's style sheet, script and forms: nothing is inline. */

/** Entries of the menu: path and name. */
export const sections = [
  ["", "Overview"],
  ["/requests", "Requests"],
  ["/lanes", "Lanes"],
  ["/rules", "Rules"],
  ["/accounts", "Accounts"],
  ["/webhooks", "Webhooks"],
  ["/audit", "Audit"]
] as const

export type Section = (typeof sections)[number][0]

export const path = "/console"

export interface Frame {
  readonly title: string
  /** The page's menu entry; null: no operator is signed in. */
  readonly section: Section | null
  /** The session's form token, sent with every form. */
  readonly formToken: string
  /** The operator who is signed in. */
  readonly operator?: string
  /** Unix milliseconds. */
  readonly now: number
  /** Requests that wait, for the menu. */
  readonly waiting?: number
  readonly search?: string
  /** Confirmation of the last action. */
  readonly said?: string
}

/** The paths of each icon, in a box of 24. */
const paths = {
  ok: '<circle cx="12" cy="12" r="9"/><path d="m8 12.5 2.8 2.7L16 9.5"/>',
  part: '<circle cx="12" cy="12" r="9"/><path d="M12 3a9 9 0 0 1 0 18z" fill="currentColor"/>',
  bad: '<path d="M8.3 3h7.4L21 8.3v7.4L15.7 21H8.3L3 15.7V8.3z"/><path d="m9 9 6 6m0-6-6 6"/>',
  wait: '<circle cx="12" cy="12" r="9"/><path d="M12 7v5l3.5 2"/>',
  late: '<path d="M12 3.5 22 20.5H2z"/><path d="M12 10v4.5m0 2.8v.1"/>',
  tick: '<path d="m4 12.5 5.5 5.5L20 6.5"/>',
  some: '<path d="M12 4v10m0 5.2v.3"/>',
  pause: '<circle cx="12" cy="12" r="9"/><path d="M9.5 8.5v7m5-7v7"/>',
  copy: '<rect x="8.5" y="8.5" width="12" height="12" rx="2"/><path d="M15.5 5.5v-.5a2 2 0 0 0-2-2h-8a2 2 0 0 0-2 2v8a2 2 0 0 0 2 2h.5"/>',
  ext: '<path d="M14 4h6v6m0-6-9 9"/><path d="M18 14v4a2 2 0 0 1-2 2H6a2 2 0 0 1-2-2V8a2 2 0 0 1 2-2h4"/>',
  again: '<path d="M20 11a8 8 0 0 0-14.5-3.5L4 9m0-5v5h5M4 13a8 8 0 0 0 14.5 3.5L20 15m0 5v-5h-5"/>',
  book: '<path d="M5 4h11a3 3 0 0 1 3 3v13H8a3 3 0 0 1-3-3zM5 17a3 3 0 0 1 3-3h11"/>'
} as const

export type Icon = keyof typeof paths

const sprite = new Html(
  `<svg class="sprite" aria-hidden="true">${Object.entries(paths)
    .map(([name, path]) => `<symbol id="i-${name}" viewBox="0 0 24 24">${path}</symbol>`)
    .join("")}</svg>`
)

export const icon = (name: Icon, classes = ""): Html =>
  html`<svg class="i${classes}" aria-hidden="true"><use href="#i-${name}"/></svg>`

const tower = new Html(
  '<rect width="32" height="32" rx="7"/><path d="M7 25V9h4v3h3V9h4v3h3V9h4v16h-6v-5a3 3 0 0 0-6 0v5z"/>'
)

const favicon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='7' fill='%231f6f5c'/%3E%3Cpath d='M7 25V9h4v3h3V9h4v3h3V9h4v16h-6v-5a3 3 0 0 0-6 0v5z' fill='%23fff'/%3E%3C/svg%3E"

const menu = ({ section, waiting = 0 }: Frame): Html =>
  html`<nav class="tabs" aria-label="Console"><ul>${sections.map(
    ([at, name]) =>
      html`<li><a href="${path}${at}"${at === section ? html` aria-current="page"` : null}>${name}${
        at === "/requests" && waiting > 0 ? html`<b>${waiting}<span class="unseen"> waiting</span></b>` : null
      }</a></li>`
  )}</ul></nav>`

const signOut = ({ formToken }: Frame, classes: string): Html =>
  html`<form class="${classes}" method="post" action="${path}/sign-out">${hiddenField({ formToken })}<button class="flat">Sign out</button></form>`

export const page = (frame: Frame, content: Part): string => {
  const { now, operator = "", said = "", search = "", section, title } = frame
  const at = new Date(now).toISOString()
  return html`<!DOCTYPE html>
<html lang="en" data-now="${at}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · castellan</title>
<link rel="stylesheet" href="${path}/style.css">
<link rel="icon" href="${favicon}">
<script src="${path}/script.js" defer></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header class="top">
<div class="bar"><a class="brand" href="${path}"><svg viewBox="0 0 32 32" aria-hidden="true">${tower}</svg><span>castellan</span></a>${
    section === null
      ? null
      : html`
<form class="find" role="search" action="${path}/search"><label class="unseen" for="q">Search</label><input id="q" name="q" type="search" value="${search}" maxlength="200" placeholder="Request, wallet, hash, salt or metadata" autocomplete="off" spellcheck="false"><kbd aria-hidden="true">/</kbd></form>
<div class="live"><time id="updated">made ${at.slice(11, 19)} UTC</time><button type="button" id="live" aria-pressed="true" title="Refresh every 10 seconds" hidden>${icon("again")}<span>Live</span></button></div>
${signOut(frame, "out")}`
  }</div>
${section === null ? null : menu(frame)}
</header>
<p id="said" class="${said === "" ? "unseen" : "t-ok"}" role="status">${said}</p>
<main id="main" tabindex="-1">
${content}
</main>
${
  section === null
    ? null
    : html`<footer><span>castellan ${version}, signed in as ${operator}</span><span>Times are UTC, exact on hover</span>${signOut(frame, "")}</footer>`
}
${sprite}
</body>
</html>
`.text
}

export const hiddenField = (fields: Readonly<Record<string, string>>): Part =>
  Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)

export const head = (title: Part, below: Part = null, acts: Part = null, crumb: Part = null): Html =>
  html`<div class="head"><div>${crumb === null ? null : html`<p class="crumb">${crumb}</p>`}<h1>${title}</h1>${
    below === null ? null : html`<p>${below}</p>`
  }</div>${acts === null ? null : html`<div class="acts">${acts}</div>`}</div>`

const idOf = (text: string): string => text.toLowerCase().replace(/[^a-z0-9]+/g, "-")

/** A section with a heading. `isLive`: the script renews it. */
export const box = (title: string, content: Part, aside: Part = null, isLive = false): Html => {
  const id = idOf(title)
  return html`<section class="box" id="${id}" aria-labelledby="${id}-t"${isLive ? html` data-live` : null}><header><h2 id="${id}-t">${title}</h2>${aside}</header>${content}</section>`
}

export interface Column {
  readonly name: string
  readonly isRight?: boolean
}

/** A table with a hidden caption, or a sentence where it has no rows. The first cell of a row is its heading. */
export const table = (
  caption: string,
  columns: ReadonlyArray<string | Column>,
  rows: ReadonlyArray<ReadonlyArray<Part>>,
  none: string,
  classes = ""
): Html => {
  if (rows.length === 0) return html`<p class="in dim">${none}</p>`
  const all = columns.map((column) => (typeof column === "string" ? { name: column } : column))
  const side = ({ isRight }: Column) => (isRight === true ? html` class="r"` : null)
  return html`<table class="${classes}"><caption class="unseen">${caption}</caption><thead><tr>${all.map(
    (column) =>
      html`<th scope="col"${side(column)}>${column.name === "" ? html`<span class="unseen">Actions</span>` : column.name}</th>`
  )}</tr></thead><tbody>
${rows.map(
  ([first = "", ...cells]) =>
    html`<tr><th scope="row"${/^\d+$/.test(String(first)) ? html` data-l="${all[0]?.name ?? ""}"` : null}>${first}</th>${cells.map(
      (cell, at) => {
        const { isRight, name = "" } = all[at + 1] ?? { name: "" }
        return html`<td class="${isRight === true ? "r" : ""}${name === "" ? " act" : ""}${cell === "–" ? " none" : ""}"${name === "" ? null : html` data-l="${name}"`}><div>${cell}</div></td>`
      }
    )}</tr>\n`
)}</tbody></table>`
}

export const facts = (entries: ReadonlyArray<readonly [string, Part]>): Html =>
  html`<div class="in"><dl class="facts">${entries.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></div>`

/** Names and values, one a row. */
export const rows = (entries: ReadonlyArray<readonly [string, Part]>): Html =>
  html`<div class="in"><dl class="rows">${entries.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl></div>`

export const problem = (text: Part): Html => html`<p class="t-bad" role="alert">${icon("bad")} ${text}</p>`

/** Longer JSON is not part of the page, which renews itself. */
const longestJson = 262_144

/** JSON under a title that opens it; bigints are decimal text. `elsewhere`: a clause that says who has longer JSON. */
export const folded = (title: string, value: unknown, elsewhere: string, longest = longestJson): Html => {
  const json = JSON.stringify(value, (_, each) => (typeof each === "bigint" ? each.toString() : each), 2)
  return html`<details><summary>${title}</summary>${
    json.length > longest
      ? html`<p class="in dim">${count(json.length)} characters: ${elsewhere}.</p>`
      : html`<pre tabindex="0">${json}</pre>`
  }</details>`
}

export const code = (text: string): Html => html`<code>${text}</code>`

/** Text in which backticks mark code. */
export const mark = (text: string): Part =>
  text.split("`").map((part, at) => (at % 2 === 0 ? part : code(part)))

/** The state of something, with an icon and a word. */
export type Tone = "ok" | "part" | "bad" | "late" | "wait" | "pause"

export const status = (tone: Tone, word: string): Html =>
  html`<span class="st ${tone}">${icon(tone)}${word}</span>`

export const shorten = (text: string): string =>
  text.length > 14 ? `${text.slice(0, 6)}…${text.slice(-4)}` : text

export const requestLink = (requestId: string): Html =>
  html`<a href="${path}/requests/${requestId}">${shorten(requestId)}</a>`

/** The requests of an account. The treasury's name ends with a space, which no one sees. */
export const accountLink = (accountId: string): Html =>
  html`<a href="${path}/requests?account=${encodeURIComponent(accountId)}">${accountId === TopUps.account ? "the treasury" : accountId}</a>`

/** `name`: before the signer. */
export const laneLink = (chainId: bigint | null, signer: string, name: string): Html =>
  html`<a href="${path}/lanes/${chainId}/${signer}">${name}${shorten(signer)}</a>`

/** A hash or an address, shortened: for links, which cannot have a button in them. */
export const brief = (text: string): Html => html`<code title="${text}">${shorten(text)}</code>`

/** A hash or an address, shortened, with a button that copies it and a link to the explorer. */
export const hash = (
  text: string,
  what: string,
  chainId: bigint | null = null,
  kind: "address" | "tx" | null = null
): Html => {
  const short = shorten(text)
  const explorer = chainId === null || kind === null ? null : Chains.of(chainId).explorer
  return html`<span class="h"><code title="${text}">${short}</code><button type="button" data-copy="${text}" aria-label="Copy the ${what} ${short}" title="Copy" hidden>${icon("copy")}</button>${
    explorer === null
      ? null
      : html`<a class="ext" href="${explorer}/${kind ?? ""}/${text}" rel="noreferrer" aria-label="${what} ${short} in the block explorer" title="Open in the explorer">${icon("ext")}</a>`
  }</span>`
}

export const address = (text: string, chainId: bigint | null = null): Html =>
  hash(text, "address", chainId, "address")

export const transaction = (text: string, chainId: bigint): Html => hash(text, "transaction", chainId, "tx")

/** A time as its age; exact on hover. */
export const ago = (millis: number, now: number): Html => {
  const iso = new Date(millis).toISOString()
  return html`<time datetime="${iso}" title="${iso.replace("T", " ").replace("Z", " UTC")}" data-ago=" ago">${age((now - millis) / 1_000)} ago</time>`
}

/** A time of day; exact on hover. */
export const clock = (millis: number): Html => {
  const iso = new Date(millis).toISOString()
  return html`<time datetime="${iso}" title="${iso.replace("T", " ").replace("Z", " UTC")}">${iso.slice(11, 19)}</time>`
}

export const age = (seconds: number): string => {
  const whole = Math.max(0, Math.floor(seconds))
  if (whole < 90) return `${whole} s`
  if (whole < 5_400) return `${Math.round(whole / 60)} min`
  return whole < 129_600 ? `${Math.round(whole / 3_600)} h` : `${Math.round(whole / 86_400)} d`
}

/** A decimal number with thousands marked. */
const group = (digits: string): string => digits.replace(/\B(?=(\d{3})+$)/g, ",")

export const count = (value: number | bigint): string => group(Math.trunc(Number(value)).toString())

/** An amount in units of 10^decimals, with at most `places` decimals that count, rounded down. */
export const units = (value: bigint, decimals: number, places: number): string => {
  const negative = value < 0n
  const digits = (negative ? -value : value).toString().padStart(decimals + 1, "0")
  const whole = digits.slice(0, digits.length - decimals)
  const fraction = digits.slice(digits.length - decimals)
  const leading = /^0*/.exec(fraction)?.[0].length ?? 0
  const kept = fraction.slice(0, whole === "0" ? Math.max(places, leading + 3) : places).replace(/0+$/, "")
  return `${negative ? "−" : ""}${group(whole)}${kept === "" ? "" : `.${kept}`}`
}

/** Wei in the chain's coin. */
export const coins = (wei: bigint, chainId: bigint): string =>
  `${units(wei, 18, 4)} ${Chains.of(chainId).coin}`

/** Wei a gas unit, in gwei. */
export const gwei = (wei: bigint): string => `${units(wei, 9, 3)} gwei`

/** A share (0 to 1) as a bar, with its name for screen readers. */
export const meter = (share: number, name: string): Html => {
  const width = Math.min(100, Math.max(0, Math.round(share * 100)))
  const tone = share >= 1 ? "bad" : share >= 0.8 ? "part" : "v"
  return html`<svg class="meter" viewBox="0 0 100 6" preserveAspectRatio="none" role="img" aria-label="${name}: ${width} %"><rect width="100" height="6" rx="3"/><rect class="${tone}" width="${width}" height="6" rx="3"/></svg>`
}

const box240 = { width: 240, height: 40 }

/** Values over time as a line; null: not measured. */
export const line = (
  values: ReadonlyArray<number | null>,
  name: string,
  tall = false,
  most?: number
): Html => {
  const height = tall ? 96 : box240.height
  const top = most ?? Math.max(1e-9, ...values.map((value) => value ?? 0))
  const x = (at: number) => ((at * box240.width) / Math.max(1, values.length - 1)).toFixed(1)
  const y = (value: number) => (height - 2 - ((height - 4) * Math.min(value, top)) / top).toFixed(1)
  const parts = values.map((value, at) =>
    value === null ? "" : `${at === 0 || values[at - 1] === null ? "M" : "L"}${x(at)} ${y(value)}`
  )
  return html`<svg class="ch${tall ? " tall" : ""}" viewBox="0 0 ${box240.width} ${height}" preserveAspectRatio="none" role="img" aria-label="${name}"><path d="${parts.join("")}"/></svg>`
}

/** Counts by hour as bars, the failed ones on top. */
export const bars = (
  values: ReadonlyArray<{ readonly all: number; readonly failed: number }>,
  name: string
): Html => {
  const most = Math.max(1, ...values.map(({ all }) => all))
  const step = box240.width / Math.max(24, values.length)
  const size = (value: number) => (box240.height * value) / most
  return html`<svg class="ch" viewBox="0 0 ${box240.width} ${box240.height}" preserveAspectRatio="none" role="img" aria-label="${name}">${values.map(
    ({ all, failed }, at) => {
      const x = (box240.width - (values.length - at) * step + 1).toFixed(1)
      const width = (step - 2).toFixed(1)
      return [
        html`<rect x="${x}" y="${(box240.height - size(all)).toFixed(1)}" width="${width}" height="${size(all).toFixed(1)}"/>`,
        failed === 0
          ? null
          : html`<rect class="x" x="${x}" y="${(box240.height - size(all)).toFixed(1)}" width="${width}" height="${Math.max(1, size(failed)).toFixed(1)}"/>`
      ]
    }
  )}</svg>`
}

/** An action behind a button: a dialog says its effect and asks for a reason. */
export interface Act {
  /** Unique on the page. */
  readonly id: string
  readonly button: string
  readonly question: string
  readonly effects: ReadonlyArray<Part>
  /** State that does not change. */
  readonly stays: string
  readonly action: string
  readonly fields: Readonly<Record<string, string>>
  readonly confirm: string
  readonly isStop: boolean
  /** Text that the operator types to confirm. */
  readonly typed?: string
}

export const act = ({ typed = "", ...given }: Act): Html => {
  const { action, button, confirm, effects, fields, id, isStop, question, stays } = given
  const typing =
    typed === ""
      ? null
      : html`<div><label for="${id}-n">Type ${typed} to confirm</label><input id="${id}-n" name="typed" required pattern="${typed}" autocomplete="off" spellcheck="false"></div>`
  return html`<button type="button" class="${isStop ? "stop" : "go"}" popovertarget="${id}">${button}</button><div popover id="${id}" role="dialog" aria-labelledby="${id}-t"><form method="post" action="${path}${action}">${hiddenField(fields)}<h2 id="${id}-t">${question}</h2><ul>${effects.map((effect) => html`<li>${effect}</li>`)}</ul><p class="dim">${stays}</p><div><label for="${id}-r">Reason (goes to the audit log)</label><textarea id="${id}-r" name="reason" required minlength="5" maxlength="500" autofocus></textarea></div>${typing}<div class="acts"><button class="${isStop ? "stop" : "go"}">${confirm}</button><button type="button" class="flat" popovertarget="${id}" popovertargetaction="hide">Keep as it is</button></div></form></div>`
}
