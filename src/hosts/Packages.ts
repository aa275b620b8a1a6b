import { readFileSync } from "node:fs"

interface Manifest {
  readonly version: string
  /** Optional packages: the operator installs those that the configuration needs. */
  readonly peerDependencies: Readonly<Record<string, string>>
}

const manifest: Manifest = JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))

export const { version } = manifest

/** Install command for the tested versions. */
export const installation = (names: ReadonlyArray<string>): string => {
  const { peerDependencies } = manifest
  const versioned = names.map((name) => `${name}@${peerDependencies[name]?.replace(/^\^/, "") ?? "latest"}`)
  return `npm install ${versioned.join(" ")}`
}
