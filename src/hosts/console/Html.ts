/** Text that is already HTML. Templates escape everything else. */
export class Html {
  readonly text: string
  constructor(text: string) {
    this.text = text
  }
}

export type Part = Html | string | number | bigint | null | ReadonlyArray<Part>

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;"
}

const isList = (part: Part): part is ReadonlyArray<Part> => Array.isArray(part)

const render = (part: Part): string => {
  if (part === null) return ""
  if (part instanceof Html) return part.text
  return isList(part)
    ? part.map(render).join("")
    : String(part).replace(/[&<>"']/g, (character) => entities[character] ?? "")
}

/** A template that escapes its parts, for text and quoted attributes. */
export const html = (strings: TemplateStringsArray, ...parts: ReadonlyArray<Part>): Html =>
  new Html(strings.map((text, at) => text + (at < parts.length ? render(parts[at] ?? null) : "")).join(""))
