import { readFileSync } from "node:fs"

/** Optional packages: the operator installs those that the configuration needs. */

/** Install command for the tested versions. */
export const installation = (names: ReadonlyArray<string>): string => {
  const { peerDependencies }: { readonly peerDependencies: Readonly<Record<string, string>> } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8")
  )
  const versioned = names.map((name) => `${name}@${peerDependencies[name]?.replace(/^\^/, "") ?? "latest"}`)
  return `npm install ${versioned.join(" ")}`
}
