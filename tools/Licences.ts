import { readFileSync } from "node:fs"

/** What a lockfile says of one package. */
export interface Locked {
  readonly version?: string
  readonly license?: string
  readonly dev?: boolean
}

export interface Licensed {
  readonly name: string
  readonly version: string
  readonly licence: string
}

/** Packages of which parts are in the package's own files, by their places below node_modules: see `bundle.ts`. */
export const bundled: ReadonlyArray<string> = JSON.parse(
  readFileSync(new URL("bundled.json", import.meta.url), "utf8")
)

/** The packages that run the service, by name: those that are installed with it, optional ones included, and `bundled`. */
export const ofRunTime = (packages: Readonly<Record<string, Locked>>): ReadonlyArray<Licensed> =>
  Object.entries(packages)
    .filter(
      ([path, { dev }]) =>
        path !== "" && (dev !== true || bundled.includes(path.slice("node_modules/".length)))
    )
    .map(([path, { license, version }]) => ({
      name: path.slice(path.lastIndexOf("node_modules/") + "node_modules/".length),
      version: version ?? "",
      licence: license ?? "unknown"
    }))
    .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.version < b.version ? -1 : 1))

/** Packages for development of which the build ships files, with their licences beside them, by where they are. */
const shipped: Readonly<Record<string, string>> = { "swagger-ui-dist": "dist/hosts/http/docs/swagger-ui" }

const named = (packages: Readonly<Record<string, Locked>>, name: string): string => {
  const { license = "unknown", version = "" } = packages[`node_modules/${name}`] ?? {}
  return `${name} ${version} (${license})`
}

/** The page of the documentation. */
export const page = (packages: Readonly<Record<string, Locked>>): string => {
  const byLicence = new Map<string, Array<Licensed>>()
  for (const each of ofRunTime(packages).filter(({ name }) => !bundled.includes(name)))
    byLicence.set(each.licence, [...(byLicence.get(each.licence) ?? []), each])
  return [
    "# Licences of what runs",
    "",
    "castellan is under the MIT licence. Packages that are installed with it, out of package-lock.json (generated: `npm run docs`):",
    "",
    ...[...byLicence]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([licence, own]) => [
        `## ${licence}`,
        "",
        own.map(({ name, version }) => `${name} ${version}`).join(", "),
        ""
      ]),
    "## Shipped in the package itself",
    "",
    Object.entries(shipped)
      .map(([name, where]) => `files of ${named(packages, name)}, in \`${where}\``)
      .join(", "),
    "",
    `Parts of ${bundled.map((name) => named(packages, name)).join(", ")}, in files of \`dist/hosts\` and \`dist/adapters/cluster\`; their licences, and those of installed packages of which there are parts too, are in \`dist/LICENSES.txt\`.`,
    ""
  ].join("\n")
}
