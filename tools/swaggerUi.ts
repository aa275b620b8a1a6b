import { copyFileSync, mkdirSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

/** Puts the files of Swagger UI that the service sends into what is built, with their licences; its package stays here. */
const from = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"))
const to = fileURLToPath(new URL("../dist/hosts/http/docs/swagger-ui/", import.meta.url))
mkdirSync(to, { recursive: true })
for (const name of [
  "swagger-ui.css",
  "swagger-ui-bundle.js",
  "swagger-ui-bundle.js.LICENSE.txt",
  "LICENSE",
  "NOTICE"
])
  copyFileSync(join(from, name), join(to, name))
