import { readFileSync } from "node:fs"

/** Reads a report of `npm audit --json`; fails for what is grave and in a package that runs. */

const json = (path) => JSON.parse(readFileSync(path, "utf8"))
const { packages } = json("package-lock.json")
const bundled = new Set(json("tools/bundled.json").map((name) => `node_modules/${name}`))
const { vulnerabilities } = json(0)

const grave = Object.values(vulnerabilities).filter(
  ({ nodes, severity }) =>
    /^(high|critical)$/.test(severity) &&
    nodes.some((path) => bundled.has(path) || (packages[path] !== undefined && packages[path].dev !== true))
)
for (const { name, range, severity } of grave) console.error(`audit: ${name} ${range}: ${severity}`)
if (grave.length > 0) process.exit(1)
console.log("audit: nothing of high severity")
