import { readFileSync } from "node:fs"

/** Reads a report of `npm audit --json`; fails for what is grave and in a package that runs. */

const json = (path) => JSON.parse(readFileSync(path, "utf8"))
const { packages } = json("package-lock.json")

/** Packages that castellan runs with, once they are installed beside it: those that it brings are not for development. */
const optIn = new Set()
const visit = (name, from = "") => {
  const place = from !== "" && packages[`${from}/node_modules/${name}`] ? `${from}/node_modules/${name}` : `node_modules/${name}`
  if (optIn.has(place) || packages[place] === undefined) return
  optIn.add(place)
  for (const each of Object.keys({ ...packages[place].dependencies, ...packages[place].optionalDependencies })) visit(each, place)
}
for (const name of Object.keys(json("package.json").peerDependencies)) visit(name)

const { vulnerabilities } = json(0)

const grave = Object.values(vulnerabilities).filter(
  ({ nodes, severity }) =>
    /^(high|critical)$/.test(severity) &&
    nodes.some((path) => packages[path] !== undefined && (packages[path].dev !== true || optIn.has(path)))
)
for (const { name, range, severity } of grave) console.error(`audit: ${name} ${range}: ${severity}`)
if (grave.length > 0) process.exit(1)
console.log("audit: nothing of high severity")
