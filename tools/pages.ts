import { copyFileSync, mkdirSync, readdirSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"

/** Copies the service's browser files into the build: its pages, and Swagger UI's files with their licences. */
const source = fileURLToPath(new URL("../src/hosts/", import.meta.url))
const built = fileURLToPath(new URL("../dist/hosts/", import.meta.url))
for (const folder of ["http/docs", "http/playground", "console"])
  for (const entry of readdirSync(join(source, folder), { withFileTypes: true }))
    if (entry.isFile() && !entry.name.endsWith(".ts"))
      copyFileSync(join(source, folder, entry.name), join(built, folder, entry.name))

const from = dirname(createRequire(import.meta.url).resolve("swagger-ui-dist/package.json"))
const to = join(built, "http/docs/swagger-ui")
mkdirSync(to, { recursive: true })
for (const name of [
  "swagger-ui.css",
  "swagger-ui-bundle.js",
  "swagger-ui-bundle.js.LICENSE.txt",
  "LICENSE",
  "NOTICE"
])
  copyFileSync(join(from, name), join(to, name))
