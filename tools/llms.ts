import { readFileSync } from "node:fs"
import * as Pages from "../docs/.vitepress/pages.js"

const read = (path: string): string => readFileSync(new URL(`../${path}`, import.meta.url), "utf8")

/** First sentence below a page's title, without links; empty if something else is there. */
const summary = (text: string): string => {
  const [, paragraph = ""] = text.split("\n\n").filter((part) => !part.startsWith("<!--"))
  if (!/^[A-Z*`]/.test(paragraph) || /^(```|Generated )/.test(paragraph)) return ""
  const prose = paragraph.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
  return `: ${/^.*?\.(?= |$)/.exec(prose)?.[0] ?? prose}`
}

type Item = (typeof Pages.sidebar)[number]

/** Lines of an item and, except for decisions, of the items below it. */
const lines = ({ items = [], link = "", text = "" }: Item): ReadonlyArray<string> => {
  const path = `${link.slice(1)}.md`
  const own = link === "" ? [] : [`- [${text}](${path})${summary(read(`docs/${path}`))}`]
  return [...own, ...(text === "Decisions" ? [] : items.flatMap(lines))]
}

/** `docs/llms.txt`, by https://llmstxt.org: the pages of the documentation for language models. */
export const page = (): string => {
  const { description, name } = JSON.parse(read("package.json"))
  return [
    `# ${name}`,
    `> ${description}`,
    [
      "- `npx castellan dev` starts a chain, the service and a first operation, and prints a request to repeat.",
      "- Requests are JSON with the header `X-API-Key`. Unknown members are refused. Large integers are decimal strings.",
      "- A write takes an `Idempotency-Key`: one key and one body have one outcome. `Prefer: respond-async` answers with a `requestId`, and `GET /requests/{requestId}?wait=30` waits.",
      "- The end of a window of validity is spelled `validUnitl`.",
      "- A running service describes its interface at `/openapi.json`."
    ].join("\n"),
    ...Pages.sidebar.map((group) => `## ${group.text}\n\n${(group.items ?? []).flatMap(lines).join("\n")}`)
  ]
    .join("\n\n")
    .concat("\n")
}
