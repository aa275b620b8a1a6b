import { existsSync, readFileSync } from "node:fs"
import { dirname, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import type { MarkdownRenderer } from "vitepress"

const docs = fileURLToPath(new URL("..", import.meta.url))

/** The name of a heading in links, as hosts of repositories make it of Markdown: a link holds there and on the site. */
export const slug = (heading: string): string =>
  heading
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/g, "-")

/**
 * A picture as part of its page. As an image it follows the reader's system and not the switch of the site, which its
 * own `style` is for where it stands alone.
 */
const inlined = (path: string, alt: string): string => {
  const svg = readFileSync(path, "utf8").replaceAll(/<style>[\s\S]*?<\/style>|<!--[\s\S]*?-->/g, "")
  const label = alt.replaceAll("&", "&amp;").replaceAll('"', "&quot;")
  return `<span class="picture">${svg.replace("<svg ", `<svg role="img" aria-label="${label}" `)}</span>`
}

export const extend = (md: MarkdownRenderer): void => {
  const image = md.renderer.rules.image
  md.renderer.rules.image = (tokens, index, options, env, self) => {
    const token = tokens[index]
    const source = token?.attrGet("src") ?? ""
    if (token !== undefined && source.endsWith(".svg"))
      return inlined(resolve(dirname(env.path), source), token.content)
    return image?.(tokens, index, options, env, self) ?? ""
  }
  // Files of the repository that are not of the site: the page names them and does not link to them.
  md.core.ruler.after("inline", "files-of-the-repository", ({ env, tokens }) => {
    for (const { children } of tokens) {
      let outside = false
      for (const token of children ?? []) {
        const target = token.type === "link_open" ? (token.attrGet("href") ?? "") : ""
        const path = resolve(dirname(env.path ?? docs), target.replace(/#.*$/, ""))
        if (target.startsWith(".") && relative(docs, path).startsWith("..")) {
          if (!existsSync(path)) throw new Error(`${env.relativePath}: there is no ${target}`)
          outside = true
          token.attrs = [["class", "of-the-repository"]]
        }
        if (outside && token.type.startsWith("link_")) {
          if (token.type === "link_close") outside = false
          token.type = token.type.replace("link", "span")
          token.tag = "span"
        }
      }
    }
  })
}
