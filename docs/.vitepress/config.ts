import { copyFileSync, mkdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { defineConfig } from "vitepress"
import * as Markdown from "./markdown.js"
import * as Pages from "./pages.js"

/** The documentation as a site: `npm run docs:site`. It loads no file from another host. */
export default defineConfig({
  title: "castellan",
  description: "ERC-4337 smart-contract wallets for backends",
  lang: "en",
  cleanUrls: false,
  outDir: "../.site",
  cacheDir: "../node_modules/.cache/vitepress",
  head: [["link", { rel: "icon", type: "image/svg+xml", href: "/icon.svg" }]],
  markdown: {
    theme: { light: "github-light-high-contrast", dark: "github-dark" },
    anchor: { slugify: Markdown.slug },
    // Braces of a path stand for its parameters.
    attrs: { disable: true },
    config: Markdown.extend
  },
  themeConfig: {
    search: { provider: "local" },
    outline: { level: [2, 3] },
    nav: Pages.nav,
    sidebar: Pages.sidebar,
    externalLinkIcon: true,
    footer: { message: "MIT licence" }
  },
  /** Copies linked files, and for language models `llms.txt` with the pages' sources that it names. */
  buildEnd: ({ outDir, pages, srcDir }) => {
    for (const file of [...Pages.files, "llms.txt", ...pages]) {
      mkdirSync(dirname(join(outDir, file)), { recursive: true })
      copyFileSync(join(srcDir, file), join(outDir, file))
    }
  }
})
