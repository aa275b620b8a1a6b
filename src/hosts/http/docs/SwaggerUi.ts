import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"
import * as Pages from "../message/Pages.js"

/** Of Swagger UI itself: the build puts its files beside this module; in a checkout they are where npm has them. */
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

/** The page that shows the OpenAPI document and sends requests. Relative, so that it stands under any base path. */
export const page = Pages.file(() => new URL("page.html", import.meta.url), "text/html", {
  "content-security-policy": Pages.policy
})

/** What the page loads, below its own path. Nobody else is asked for anything. */
export const pages: Pages.Pages = new Map([
  ["/docs/swagger-ui.css", foreign("swagger-ui.css", "text/css")],
  ["/docs/swagger-ui-bundle.js", foreign("swagger-ui-bundle.js", "text/javascript")],
  ["/docs/start.js", Pages.file(() => new URL("start.js", import.meta.url), "text/javascript")]
])
