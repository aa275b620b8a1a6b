import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { pathToFileURL } from "node:url"
import type { Page, Pages } from "../message/Pages.js"

/**
 * The page that shows the OpenAPI document and sends requests: Swagger UI. The build puts its files beside this module;
 * in a checkout they are read where npm has them.
 */
const folder = (): URL => {
  const built = new URL("./swagger-ui/", import.meta.url)
  return existsSync(built)
    ? built
    : new URL("./", pathToFileURL(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json")))
}

/** Read when it is first asked for. All answers share the bytes: slow readers hold no copies of them. */
const file = (name: string, contentType: string): Page => {
  let read: Uint8Array | undefined
  return {
    contentType,
    headers: { "cache-control": "public, max-age=86400" },
    get body() {
      read ??= readFileSync(new URL(name, folder()))
      return read
    }
  }
}

/** Nobody else is asked for anything: no validator of documents, and the document from this service. */
const start = `SwaggerUIBundle({
  url: "openapi.json",
  dom_id: "#reference",
  validatorUrl: null,
  deepLinking: true,
  docExpansion: "list",
  defaultModelsExpandDepth: 0,
  displayRequestDuration: true,
  persistAuthorization: false
})
`

/** What the page loads, below its own path. */
export const pages: Pages = new Map([
  ["/docs/swagger-ui.css", file("swagger-ui.css", "text/css; charset=utf-8")],
  ["/docs/swagger-ui-bundle.js", file("swagger-ui-bundle.js", "text/javascript; charset=utf-8")],
  ["/docs/start.js", { contentType: "text/javascript; charset=utf-8", body: start }]
])

/** Relative, so that it stands under any base path. */
export const page = `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>castellan HTTP interface</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="docs/swagger-ui.css">
<script defer src="docs/swagger-ui-bundle.js"></script>
<script defer src="docs/start.js"></script>
</head>
<body>
<main id="reference"><p>The interface is described in <a href="openapi.json">openapi.json</a>; with scripts, this page shows it.</p></main>
</body>
</html>
`

/** The page's own files, and requests to this service: nothing inline, nothing from elsewhere. */
export const contentSecurityPolicy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
