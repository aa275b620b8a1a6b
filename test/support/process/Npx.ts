import { mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import * as Bundle from "./Bundle.js"

/**
 * Installs the current sources in a folder's `node_modules` as npm would, next to this repository's dependencies.
 * `npx castellan` then works without a registry.
 */
export const install = async (folder: string): Promise<void> => {
  const castellan = await Bundle.of("src/hosts/cli/castellan.ts")
  const modules = join(folder, "node_modules")
  const own = join(modules, "castellan")
  for (const path of [own, join(modules, ".bin")]) mkdirSync(path, { recursive: true })
  for (const name of readdirSync(join(Bundle.root, "node_modules")))
    if (!name.startsWith(".")) symlinkSync(join(Bundle.root, "node_modules", name), join(modules, name))
  const manifest = { name: "castellan", version: "0.0.0", type: "module", bin: { castellan: "castellan.js" } }
  writeFileSync(join(own, "package.json"), JSON.stringify(manifest))
  const program = `#!/usr/bin/env node\nimport ${JSON.stringify(pathToFileURL(castellan).href)}\n`
  writeFileSync(join(own, "castellan.js"), program, { mode: 0o755 })
  symlinkSync("../castellan/castellan.js", join(modules, ".bin/castellan"))
}

/** A user's environment for `npx`, without variables of the npm that runs the tests. */
export const environment = (): NodeJS.ProcessEnv => ({
  ...Object.fromEntries(
    Object.entries(process.env).filter(
      ([name]) => !/^(npm_|NODE_ENV$|NODE_OPTIONS$|VITEST|CASTELLAN_)/.test(name)
    )
  ),
  npm_config_offline: "true",
  npm_config_update_notifier: "false"
})
