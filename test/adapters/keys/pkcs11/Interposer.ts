import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import * as SoftHsm from "./SoftHsm.js"

const source = fileURLToPath(new URL("Interposer.cpp", import.meta.url))
const headers = fileURLToPath(new URL("../../../../node_modules/pkcs11js/includes", import.meta.url))

/** Functions that stand in between. */
export type Name =
  | "C_Initialize"
  | "C_Finalize"
  | "C_GetTokenInfo"
  | "C_OpenSession"
  | "C_CloseSession"
  | "C_Login"
  | "C_FindObjectsInit"
  | "C_SignInit"
  | "C_Sign"

/** A library before SoftHSM2 that records its calls, and delays or refuses them on request. */
export interface Interposer {
  readonly library: string
  /** Number of calls of a function since the last `forget`. */
  readonly count: (name: Name) => number
  readonly forget: () => void
  /** The next calls of the function take this long, and are refused where there is a value. */
  readonly will: (
    name: Name,
    what: { readonly value?: number; readonly millis?: number; readonly times?: number }
  ) => void
  /** Additional flags of tokens from now on. */
  readonly flags: (flags: number) => void
}

/** Compiled in the HSM's folder. */
export const make = (hsm: SoftHsm.SoftHsm): Interposer => {
  const folder = join(hsm.folder, "interposer")
  const library = join(folder, "libinterposer.so")
  const calls = join(folder, "calls")
  mkdirSync(folder)
  execFileSync("g++", ["-shared", "-fPIC", "-O1", "-I", headers, "-o", library, source, "-ldl"])
  process.env.INTERPOSER_FOLDER = dirname(calls)
  process.env.INTERPOSER_TARGET = SoftHsm.library
  return {
    library,
    count: (name) =>
      existsSync(calls)
        ? readFileSync(calls, "utf8")
            .split("\n")
            .filter((line) => line === name).length
        : 0,
    forget: () => rmSync(calls, { force: true }),
    will: (name, { millis = 0, times = 1, value = 0 }) =>
      writeFileSync(join(folder, name), `${value} ${millis} ${times}`),
    flags: (flags) => writeFileSync(join(folder, "flags"), String(flags))
  }
}
