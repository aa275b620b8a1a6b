import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { createMarkdownRenderer } from "vitepress"
import site from "../../docs/.vitepress/config.js"
import { slug } from "../../docs/.vitepress/markdown.js"
import * as Pages from "../../docs/.vitepress/pages.js"

const root = fileURLToPath(new URL("../..", import.meta.url))
const docs = join(root, "docs")

const paths = readdirSync(docs, { recursive: true, encoding: "utf8" })
  .filter((path) => path.endsWith(".md") && !path.startsWith(".vitepress"))
  .map((path) => join(docs, path))
const texts = new Map([...paths, join(root, "README.md")].map((path) => [path, readFileSync(path, "utf8")]))

/** A page without its code, which has neither links nor headings. */
const prose = (text: string): string =>
  text
    .replaceAll(/^```[\s\S]*?^```$/gm, "")
    .replaceAll(/`[^`\n]*`/g, (code) => code.replaceAll(/[[\]()#]/g, ""))

const links = (text: string): ReadonlyArray<string> =>
  [...prose(text).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = ""]) =>
    /^[a-z]+:/.test(target) ? [] : [target]
  )

/** As the renderer names them: repeated names are numbered from the second on. */
const anchors = (text: string): ReadonlySet<string> => {
  const seen = new Map<string, number>()
  const names = new Set<string>()
  for (const [, heading = ""] of text.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/^#{1,6} (.+)$/gm)) {
    const name = slug(heading.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1"))
    const before = seen.get(name) ?? 0
    seen.set(name, before + 1)
    names.add(before === 0 ? name : `${name}-${before}`)
  }
  return names
}

type Item = (typeof Pages.sidebar)[number]
const linked = ({ items = [], link }: Item): ReadonlyArray<string> => [
  ...(link === undefined ? [] : [link]),
  ...items.flatMap(linked)
]

describe("the pages of docs/", () => {
  it("docs/ pages keep the parameters of a path in a heading", async () => {
    const renderer = await createMarkdownRenderer(docs, site.markdown)
    expect(renderer.render("## GET /requests/{requestId}")).toMatch(
      /^<h2 id="get-requestsrequestid"[^>]*>GET \/requests\/\{requestId\} /
    )
  })

  it("pages link to existing headings; the site's build checks links to pages", () => {
    const dead = [...texts].flatMap(([path, text]) =>
      links(text).flatMap((target) => {
        const [file = "", heading] = target.split("#")
        const to = file === "" ? path : resolve(dirname(path), file)
        const page = texts.get(to)
        return heading === undefined || page === undefined || anchors(page).has(heading)
          ? []
          : [`${relative(root, path)}: ${target}`]
      })
    )
    expect([...texts.values()].flatMap(links).length).toBeGreaterThan(100)
    expect(dead).toEqual([])
  })

  it("docs/ pages are all in the site's sidebar, once", () => {
    const shown = Pages.sidebar.flatMap(linked)
    const there = paths.map((path) => `/${relative(docs, path).replace(/\.md$/, "")}`)
    expect([...shown].sort()).toEqual(there.filter((path) => path !== "/index").sort())
  })

  it("docs/ pages link to files of the site, or of the repository outside docs/", () => {
    const files = [...texts].flatMap(([path, text]) =>
      links(text).flatMap((target) => {
        const to = resolve(dirname(path), target.replace(/#.*$/, ""))
        return texts.has(to) || to === path || path.endsWith("README.md") ? [] : [to]
      })
    )
    expect(files.filter((file) => !existsSync(file))).toEqual([])
    const ofTheSite = files.filter((file) => file.startsWith(`${docs}/`) && !file.endsWith(".svg"))
    expect([...new Set(ofTheSite)].map((file) => relative(docs, file)).sort()).toEqual(
      [...Pages.files].sort()
    )
  })
})
