import { type Html, html, type Part } from "./Html.js"

/** The frame of every page. Nothing inline: the content security policy allows the style sheet and forms of this port only. */

/** The entries of the navigation: where they lead to, and their names. */
export const sections = [
  ["", "Overview"],
  ["/lanes", "Lanes"],
  ["/requests", "Requests"],
  ["/accounts", "Accounts"],
  ["/webhooks", "Webhooks"],
  ["/budgets", "Budgets"],
  ["/audit", "Audit"]
] as const

export type Section = (typeof sections)[number][0]

export interface Frame {
  readonly title: string
  /** Which entry of the navigation it is under; null: not signed in. */
  readonly section: Section | null
  /** Of the session; what forms send with them. */
  readonly formToken: string
  /** What was just done. */
  readonly said?: string
}

export const path = "/console"

export const page = ({ formToken, said = "", section, title }: Frame, content: Part): string =>
  html`<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title} · castellan</title>
<link rel="stylesheet" href="${path}/style.css">
<link rel="icon" href="data:,">
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<p class="name">castellan <span>operator</span></p>
${
  section === null
    ? null
    : html`<nav aria-label="Console"><ul>${sections.map(
        ([at, name]) =>
          html`<li><a href="${path}${at}"${at === section ? html` aria-current="page"` : null}>${name}</a></li>`
      )}</ul></nav>
<form method="post" action="${path}/sign-out">${hidden({ formToken })}<button class="quiet">Sign out</button></form>`
}
</header>
<main id="main">
<h1>${title}</h1>
<div role="status">${said === "" ? null : html`<p class="good">${said}</p>`}</div>
${content}
</main>
</body>
</html>
`.text

/** Fields of a form that are not seen. */
export const hidden = (fields: Readonly<Record<string, string>>): Part =>
  Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)

/** A table with a caption, or a sentence where there are no rows. */
export const table = (
  caption: string,
  headings: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<Part>>,
  none: string
): Html =>
  rows.length === 0
    ? html`<section aria-label="${caption}"><h2>${caption}</h2><p class="none">${none}</p></section>`
    : html`<div class="scroll" role="region" aria-label="${caption}" tabindex="0"><table>
<caption>${caption}</caption>
<thead><tr>${headings.map((heading) => html`<th scope="col">${heading === "" ? html`<span class="unseen">Action</span>` : heading}</th>`)}</tr></thead>
<tbody>${rows.map((cells) => html`<tr>${cells.map((cell) => html`<td>${cell}</td>`)}</tr>\n`)}</tbody>
</table></div>`

/** Names and what they stand for. */
export const facts = (entries: ReadonlyArray<readonly [string, Part]>): Html =>
  html`<dl>${entries.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`

export const problem = (text: string): Html => html`<p class="bad" role="alert">${text}</p>`

export const code = (text: string): Html => html`<code>${text}</code>`

export const time = (millis: number): Html => {
  const iso = new Date(millis).toISOString()
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace("T", " ")}</time>`
}

/** How long something has lasted, in the largest unit that says enough. */
export const age = (seconds: number): string => {
  if (seconds < 120) return `${Math.max(0, Math.floor(seconds))} s`
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`
}

/** Wei as units of the native token, to six decimals, rounded down. */
export const native = (wei: bigint): string => {
  const millionths = wei / 1_000_000_000_000n
  const fraction = (millionths % 1_000_000n).toString().padStart(6, "0").replace(/0+$/, "")
  const whole = (millionths / 1_000_000n).toString()
  return fraction === "" ? whole : `${whole}.${fraction}`
}

export const style = `
:root {
  color-scheme: light dark;
  --ground: #fbfbfa; --raised: #ffffff; --line: #d9d9d4; --text: #1d1f21; --faint: #5d6166;
  --accent: #1c5d99; --good: #1b6e3c; --bad: #a3231f;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #17191c; --raised: #1f2226; --line: #3a3f45; --text: #e8e8e4; --faint: #a4a9af;
    --accent: #7db5ea; --good: #79c797; --bad: #f08c86;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); font: 15px/1.5 system-ui, sans-serif; }
a { color: var(--accent); }
:focus-visible { outline: 3px solid var(--accent); outline-offset: 2px; }
.skip { position: absolute; left: -100vw; }
.skip:focus { left: 1rem; top: 1rem; background: var(--raised); padding: .5rem 1rem; z-index: 1; }
header { display: flex; flex-wrap: wrap; align-items: center; gap: .25rem 1.5rem; padding: .5rem 1.5rem; background: var(--raised); border-bottom: 1px solid var(--line); }
header .name { margin: 0; font-weight: 600; }
header .name span { color: var(--faint); font-weight: 400; }
nav { flex: 1; }
@media (max-width: 40rem) { nav { order: 1; flex-basis: 100%; } }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem; list-style: none; margin: 0; padding: 0; }
nav a { display: block; padding: .35rem .7rem; border-radius: .3rem; text-decoration: none; color: var(--text); }
nav a:hover { background: var(--ground); }
nav a[aria-current] { background: var(--ground); font-weight: 600; }
main { padding: 1rem 1.5rem 4rem; max-width: 82rem; margin: 0 auto; }
h1 { font-size: 1.5rem; margin: .5rem 0 1rem; overflow-wrap: anywhere; }
h2 { font-size: 1.05rem; margin: 1.75rem 0 .5rem; }
caption { text-align: left; padding: .6rem .75rem; font-size: 1.05rem; font-weight: 600; border-bottom: 1px solid var(--line); }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.scroll { margin-top: 1.5rem; overflow-x: auto; border: 1px solid var(--line); border-radius: .4rem; background: var(--raised); }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .45rem .75rem; border-bottom: 1px solid var(--line); vertical-align: top; }
tbody tr:last-child td { border-bottom: 0; }
th { font-size: .82rem; color: var(--faint); font-weight: 600; white-space: nowrap; }
td time { white-space: nowrap; }
code, pre, .mono { font: 13px/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: .75rem; border: 1px solid var(--line); border-radius: .4rem; background: var(--raised); }
dl { display: grid; grid-template-columns: repeat(auto-fill, minmax(13rem, 1fr)); gap: .75rem; margin: 0; }
dl div { padding: .6rem .9rem; background: var(--raised); border: 1px solid var(--line); border-radius: .4rem; }
dt { color: var(--faint); font-size: .82rem; }
dd { margin: 0; overflow-wrap: anywhere; }
.none { color: var(--faint); }
[role=status]:empty { display: none; }
.good, .bad { padding: .6rem .9rem; border: 1px solid; border-radius: .4rem; }
.good, .ok { color: var(--good); }
.bad, .wrong { color: var(--bad); }
form.inline { display: flex; flex-wrap: wrap; gap: .5rem; align-items: end; margin: .75rem 0; }
label { display: block; font-size: .82rem; color: var(--faint); }
input, select { font: inherit; padding: .4rem .6rem; border: 1px solid var(--line); border-radius: .3rem; background: var(--raised); color: var(--text); }
button { font: inherit; padding: .4rem .9rem; border: 1px solid var(--accent); border-radius: .3rem; background: var(--accent); color: var(--raised); cursor: pointer; }
button.quiet, button.second { background: transparent; color: var(--accent); }
button.danger { border-color: var(--bad); background: transparent; color: var(--bad); }
td form { display: inline-flex; gap: .4rem; }
`
