import { join } from "node:path"
import { pathToFileURL } from "node:url"
import type { Context } from "./Context.js"

/**
 * A module of castellan as it ships: what runs the bench from its sources adds to every function, which would count.
 */
export const load = async <Module>({ build }: Context, path: string): Promise<Module> =>
  import(pathToFileURL(join(build.folder, path)).href) as Promise<Module>
