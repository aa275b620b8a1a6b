import { sha256 } from "ethers/crypto"
import { encodeBase64, toUtf8Bytes } from "ethers/utils"
import * as Guide from "./Guide.js"
import { type Endpoint, type Field, type Reference, scalars } from "./Reference.js"
import { style } from "./Style.js"

const escape = (text: string): string =>
  text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;")

/** Text with code between backticks. */
const inline = (text: string): string => escape(text).replace(/`([^`]*)`/g, "<code>$1</code>")

const code = (text: string): string => `<code>${escape(text)}</code>`

const block = (text: string): string => `<pre tabindex="0"><code>${escape(text)}</code></pre>`

/** The first cell of each row heads it. Cells are HTML. */
const table = (
  caption: string,
  heads: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>
): string => {
  const head = heads.map((text) => `<th scope="col">${escape(text)}</th>`).join("")
  const body = rows
    .map(
      ([first = "", ...rest]) =>
        `<tr><th scope="row">${first}</th>${rest.map((text) => `<td>${text}</td>`).join("")}</tr>`
    )
    .join("\n")
  return `<div class="scroll" role="region" aria-label="${escape(caption)}" tabindex="0"><table><caption>${escape(caption)}</caption><thead><tr>${head}</tr></thead><tbody>\n${body}\n</tbody></table></div>`
}

const fields = (caption: string, rows: ReadonlyArray<Field>, withRequired: boolean): string =>
  rows.length === 0
    ? ""
    : table(
        caption,
        ["Field", "Type", ...(withRequired ? ["Required"] : []), "Notes"],
        rows.map(({ description, path, required, type }) => [
          code(path),
          escape(type),
          ...(withRequired ? [required ? "yes" : "no"] : []),
          inline(description)
        ])
      )

const parameters = (one: Endpoint): string =>
  one.parameters.length === 0
    ? ""
    : table(
        `Parameters of ${one.path}`,
        ["Name", "In", "Required", "Notes"],
        one.parameters.map(({ description, in: place, name, required }) => [
          code(name),
          place,
          required ? "yes" : "no",
          inline(description)
        ])
      )

const endpoint = (one: Endpoint): string => `<section aria-labelledby="${one.name}">
<h3 id="${one.name}"><span class="method">${one.method}</span> ${escape(one.path)}</h3>
<p><strong>${escape(one.summary)}.</strong> ${inline(one.description)}</p>
${parameters(one)}
${fields(`Request of ${one.path}`, one.request, true)}
${fields(`Answer of ${one.path}`, one.answer, false)}
${block(one.example)}
</section>`

const anchor = (title: string): string => title.toLowerCase().replaceAll(" ", "-")

const chapter = ({
  code,
  paragraphs,
  points,
  title
}: Guide.Chapter): string => `<section aria-labelledby="${anchor(title)}">
<h2 id="${anchor(title)}">${escape(title)}</h2>
${paragraphs.map((text) => `<p>${inline(text)}</p>`).join("\n")}
${points === undefined ? "" : `<ul>${points.map((text) => `<li>${inline(text)}</li>`).join("\n")}</ul>`}
${code === undefined ? "" : block(code)}
</section>`

const link = (id: string, text: string): string => `<li><a href="#${id}">${escape(text)}</a></li>`

const navigation = (source: Reference): string => `<nav aria-label="Contents"><ul>
${Guide.chapters.map(({ title }) => link(anchor(title), title)).join("\n")}
${source.groups
  .map(
    ({ endpoints, name }) =>
      `<li><a href="#${name}">${escape(name)}</a><ul>${endpoints
        .map((one) => link(one.name, `${one.method} ${one.path}`))
        .join("\n")}</ul></li>`
  )
  .join("\n")}
${link("types", "Types")}
${link("errors", "Errors")}
</ul></nav>`

/** The whole interface as one page: no script, nothing loaded from elsewhere. */
export const page = (source: Reference): string => `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escape(source.title)} HTTP interface</title>
<style>${style}</style>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header><h1>${escape(source.title)}</h1><p>${escape(source.description)} Version ${escape(source.version)}. For programs: <a href="openapi.json">OpenAPI 3.1</a>.</p></header>
<div class="columns">
${navigation(source)}
<main id="main">
${Guide.chapters.map(chapter).join("\n")}
${source.groups
  .map(
    ({ description, endpoints, name }) =>
      `<section aria-labelledby="${name}"><h2 id="${name}">${escape(name)}</h2><p>${inline(description)}</p>\n${endpoints.map(endpoint).join("\n")}</section>`
  )
  .join("\n")}
<section aria-labelledby="types"><h2 id="types">Types</h2>
${table(
  "Types of fields",
  ["Type", "Rule"],
  scalars.map(([name, rule]) => [escape(name), inline(rule)])
)}</section>
<section aria-labelledby="errors"><h2 id="errors">Errors</h2>
${source.failures
  .map(({ codes, status }) =>
    table(
      `Answers with status ${status}`,
      ["Code", "Text", "When", "What to do"],
      codes.map((one) => [code(one.code), inline(one.text), inline(one.when), inline(one.remedy)])
    )
  )
  .join("\n")}</section>
</main>
</div>
</body>
</html>
`

/** The policy under which the page shows: its own style, and nothing else. */
export const contentSecurityPolicy = `default-src 'none'; style-src 'sha256-${encodeBase64(sha256(toUtf8Bytes(style)))}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`
