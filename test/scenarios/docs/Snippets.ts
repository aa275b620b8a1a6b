import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { root } from "../../support/process/Program.js"

/** A code block of a page. */
export interface Snippet {
  readonly page: string
  /** The heading above the block. */
  readonly heading: string
  readonly language: string
  readonly text: string
}

/** The code blocks of a page, by its path in the repository. */
export const of = (page: string): ReadonlyArray<Snippet> => {
  const snippets: Array<Snippet> = []
  let heading = ""
  const parts = /^#+ (.+)$|^ *```(\w*)\n([\s\S]*?)^ *```$/gm
  for (const [, title, language, text] of readFileSync(join(root, page), "utf8").matchAll(parts))
    if (title === undefined) snippets.push({ page, heading, language: language ?? "", text: text ?? "" })
    else heading = title
  return snippets
}

/** README.md, and every page of docs/. */
export const pages: ReadonlyArray<string> = [
  "README.md",
  ...readdirSync(join(root, "docs"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md") && !path.startsWith(".vitepress"))
    .sort()
    .map((path) => `docs/${path}`)
]
