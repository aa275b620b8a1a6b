import { type Html, html, type Part } from "./Html.js"

/** The frame of every page. Nothing is inline: the content security policy allows only this port's style sheet and forms. */

/** Navigation entries: path and name. */
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
  /** Navigation entry of the page; null: not signed in. */
  readonly section: Section | null
  /** The session's form token, sent with every form. */
  readonly formToken: string
  /** Confirmation of the last action. */
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

/** Hidden form fields. */
export const hidden = (fields: Readonly<Record<string, string>>): Part =>
  Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}">`)

/** A table with a caption, or a sentence when it has no rows. */
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

/** Names and values. */
export const facts = (entries: ReadonlyArray<readonly [string, Part]>): Html =>
  html`<dl>${entries.map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`

export const problem = (text: string): Html => html`<p class="bad" role="alert">${text}</p>`

export const code = (text: string): Html => html`<code>${text}</code>`

export const time = (millis: number): Html => {
  const iso = new Date(millis).toISOString()
  return html`<time datetime="${iso}">${iso.slice(0, 19).replace("T", " ")}</time>`
}

/** A duration in the largest sufficient unit. */
export const age = (seconds: number): string => {
  if (seconds < 120) return `${Math.max(0, Math.floor(seconds))} s`
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`
}

/** Wei in units of the native token, with six decimals, rounded down. */
export const native = (wei: bigint): string => {
  const millionths = wei / 1_000_000_000_000n
  const fraction = (millionths % 1_000_000n).toString().padStart(6, "0").replace(/0+$/, "")
  const whole = (millionths / 1_000_000n).toString()
  return fraction === "" ? whole : `${whole}.${fraction}`
}
