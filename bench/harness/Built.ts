import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type { Context } from "./Context.js"

/** Loads a module of castellan as shipped: the runner of the bench's sources would slow every function down. */
export const load = async <Module>({ build }: Context, path: string): Promise<Module> =>
  import(pathToFileURL(join(build.folder, path)).href) as Promise<Module>
