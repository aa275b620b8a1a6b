import { readFileSync } from "node:fs"

/** A package's entry in package-lock.json. */
export interface Locked {
  readonly license?: string
  readonly dev?: boolean
  readonly hasInstallScript?: boolean
  readonly dependencies?: Readonly<Record<string, string>>
  readonly optionalDependencies?: Readonly<Record<string, string>>
  readonly peerDependencies?: Readonly<Record<string, string>>
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>
}

const read = (name: string) => JSON.parse(readFileSync(new URL(`../../${name}`, import.meta.url), "utf8"))

/** Packages by path. */
export const packages: Readonly<Record<string, Locked>> = read("package-lock.json").packages

export const manifest: Readonly<Record<string, Readonly<Record<string, string>>>> = read("package.json")

const names = (of: string): ReadonlyArray<string> => Object.keys(manifest[of] ?? {})

/** Packages that npm installs with castellan. */
export const installed = [...names("dependencies"), ...names("optionalDependencies")]

/** Packages that users install on demand. */
export const optIn = names("peerDependencies")

/** Path of the package as resolved from `from`; undefined if it is not installed. */
const found = (from: string, name: string): string | undefined => {
  for (let at = from; ; at = at.replace(/(^|\/)node_modules\/(?:@[^/]+\/)?[^/]+$/, "")) {
    const place = `${at === "" ? "" : `${at}/`}node_modules/${name}`
    if (packages[place] !== undefined) return place
    if (at === "") return undefined
  }
}

/** Packages that npm installs with `roots` on all platforms, by path. */
export const closure = (roots: ReadonlyArray<string>): ReadonlyMap<string, Locked> => {
  const all = new Map<string, Locked>()
  const visit = (from: string, name: string): void => {
    const place = found(from, name)
    const locked = place === undefined ? undefined : packages[place]
    if (place === undefined || locked === undefined || all.has(place)) return
    all.set(place, locked)
    const { dependencies, optionalDependencies, peerDependencies = {}, peerDependenciesMeta } = locked
    const peers = Object.keys(peerDependencies).filter(
      (peer) => peerDependenciesMeta?.[peer]?.optional !== true
    )
    for (const each of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers])
      visit(place, each)
  }
  for (const name of roots) visit("", name)
  return all
}
