import { readFileSync } from "node:fs"

/** Packages that castellan works with and does not bring: who configures what needs one installs it. */

/** How the versions that castellan is tested with are installed. */
export const installation = (names: ReadonlyArray<string>): string => {
  const { peerDependencies }: { readonly peerDependencies: Readonly<Record<string, string>> } = JSON.parse(
    readFileSync(new URL("../../package.json", import.meta.url), "utf8")
  )
  const versioned = names.map((name) => `${name}@${peerDependencies[name]?.replace(/^\^/, "") ?? "latest"}`)
  return `npm install ${versioned.join(" ")}`
}
