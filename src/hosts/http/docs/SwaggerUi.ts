import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"
import * as Pages from "../message/Pages.js"

/** A file of Swagger UI. The build copies these files next to this module; a checkout reads them from node_modules. */
const foreign = (name: string, contentType: string) => {
  const place = () => {
    const built = new URL("./swagger-ui/", import.meta.url)
    if (existsSync(built)) return new URL(name, built)
    return new URL(
      name,
      pathToFileURL(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"))
    )
  }
  return Pages.file(place, contentType, { "cache-control": "public, max-age=86400" })
}

/** The page that shows the OpenAPI document and sends requests. Its links are relative, so that any base path works. */
export const page = Pages.file(() => new URL("page.html", import.meta.url), "text/html", {
  "content-security-policy": Pages.policy
})

/** Files that the page loads, below its own path; it loads nothing from other hosts. */
export const pages: Pages.Pages = new Map([
  ["/docs/swagger-ui.css", foreign("swagger-ui.css", "text/css")],
  ["/docs/swagger-ui-bundle.js", foreign("swagger-ui-bundle.js", "text/javascript")],
  ["/docs/start.js", Pages.file(() => new URL("start.js", import.meta.url), "text/javascript")]
])
