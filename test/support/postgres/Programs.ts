import { existsSync, readdirSync } from "node:fs"
import { delimiter, join } from "node:path"

/** The folder of PostgreSQL's programs: from the PATH, or Debian's path. */
export const folder = (): string | undefined => {
  const debian = "/usr/lib/postgresql"
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : []
  return [
    ...(process.env.PATH ?? "").split(delimiter),
    ...versions.map((version) => join(debian, version, "bin"))
  ].find((path) => ["initdb", "postgres"].every((name) => existsSync(join(path, name))))
}
