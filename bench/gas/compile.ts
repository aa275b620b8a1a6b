import { readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import type { InterfaceAbi } from "ethers"

export interface Compiled {
  readonly abi: InterfaceAbi
  readonly bytecode: string
}

interface Output {
  readonly errors?: ReadonlyArray<{ readonly severity: string; readonly formattedMessage: string }>
  readonly contracts?: Readonly<
    Record<
      string,
      Readonly<Record<string, { abi: InterfaceAbi; evm: { bytecode: { readonly object: string } } }>>
    >
  >
}

const require = createRequire(import.meta.url)

/** Folder with the installed sources of other accounts. */
export const peersFolder = join(dirname(fileURLToPath(import.meta.url)), "..", "peers", "gas")

/** The settings of `contracts/compile.ts`: every account is compiled like this suite. */
const settings = {
  evmVersion: "cancun",
  viaIR: true,
  optimizer: { enabled: true, runs: 20_000 },
  metadata: { bytecodeHash: "none", appendCBOR: false },
  outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } }
}

const solc = require("solc")

/** Compiler and settings, for the table. */
export const compilerSettings = `solc ${String(solc.version()).replace(/\+.*$/, "")}, IR pipeline, optimizer with ${settings.optimizer.runs.toLocaleString("en-US")} runs, EVM version ${settings.evmVersion}`

export const packageVersion = (file: string): string => JSON.parse(readFileSync(file, "utf8")).version

const parse = (source: string, resolve: (path: string) => string): Output =>
  JSON.parse(
    solc.compile(
      JSON.stringify({
        language: "Solidity",
        sources: { [source]: { content: readFileSync(resolve(source), "utf8") } },
        settings
      }),
      {
        import: (path: string) => {
          try {
            return { contents: readFileSync(resolve(path), "utf8") }
          } catch (cause) {
            return { error: String(cause) }
          }
        }
      }
    )
  )

/** Compiles one file of a package and returns the named contract. `resolve` finds the file of an import path. */
export const compilePeer = (source: string, name: string, resolve: (path: string) => string): Compiled => {
  const output = parse(source, resolve)
  const failures = (output.errors ?? []).filter((error) => error.severity === "error")
  if (failures.length > 0) throw new Error(failures.map((error) => error.formattedMessage).join("\n"))
  const found = output.contracts?.[source]?.[name]
  if (found === undefined) throw new Error(`${source} defines no ${name}`)
  return { abi: found.abi, bytecode: `0x${found.evm.bytecode.object}` }
}
