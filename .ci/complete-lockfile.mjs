/**
 * Completes package-lock.json after an `npm install`. A registry mirror may lack binaries for other platforms; npm then
 * drops those optional packages from the lockfile, and `npm ci` refuses the lockfile everywhere. Here they come back,
 * with the version that their parent pins and the platform that their name says, so that nobody installs them who
 * does not need them. Prints what it added.
 */
import { readFileSync, writeFileSync } from "node:fs"

const file = new URL("../package-lock.json", import.meta.url)
const lock = JSON.parse(readFileSync(file, "utf8"))

const systems = ["aix", "android", "darwin", "freebsd", "linux", "netbsd", "openbsd", "openharmony", "sunos", "win32"]
const processors = { amd64: "x64", arm64: "arm64", arm: "arm", ia32: "ia32", loong64: "loong64", mips64el: "mips64el" }
Object.assign(processors, { ppc64: "ppc64", riscv64: "riscv64", s390x: "s390x", x64: "x64" })

/** Where a package of this name would be found from a folder of the lockfile, or undefined. */
const found = (from, name) => {
  for (let folder = from; ; folder = folder.replace(/(^|\/)node_modules\/(?:@[^/]+\/)?[^/]+$/, "")) {
    const path = `${folder === "" ? "" : `${folder}/`}node_modules/${name}`
    if (lock.packages[path] !== undefined) return path
    if (folder === "") return undefined
  }
}

for (const [parent, { optionalDependencies = {}, dev }] of Object.entries(lock.packages))
  for (const [name, version] of Object.entries(optionalDependencies)) {
    if (found(parent, name) !== undefined) continue
    const words = name.split(/[-/@]/)
    const os = systems.find((system) => words.includes(system))
    const cpu = Object.keys(processors).find((processor) => words.includes(processor))
    if (os === undefined || cpu === undefined || !/^\d+\.\d+\.\d+$/.test(version))
      throw new Error(`${name}@${version} of ${parent} is missing, and its name does not say for which platform it is`)
    lock.packages[`node_modules/${name}`] = {
      version,
      cpu: [processors[cpu]],
      ...(dev && { dev }),
      ...(words.includes("musl") && { libc: ["musl"] }),
      optional: true,
      os: [os]
    }
    console.log(`added ${name}@${version}`)
  }

lock.packages = Object.fromEntries(Object.entries(lock.packages).sort(([a], [b]) => (a < b ? -1 : 1)))
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`)
