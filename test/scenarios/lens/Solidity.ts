import { readFileSync } from "node:fs"
import { createRequire } from "node:module"

interface Compiled {
  readonly abi: []
  readonly evm: { readonly bytecode: { readonly object: string } }
}

interface Output {
  readonly errors?: ReadonlyArray<{ readonly severity: string; readonly formattedMessage: string }>
  readonly contracts?: { readonly source: Readonly<Record<string, Compiled>> }
}

/** Compiles a Solidity file without imports. */
export const compile = (file: URL): ((contract: string) => { readonly abi: []; readonly code: string }) => {
  const solc: { readonly compile: (input: string) => string } = createRequire(import.meta.url)("solc")
  const input = {
    language: "Solidity",
    sources: { source: { content: readFileSync(file, "utf8") } },
    settings: {
      evmVersion: "cancun",
      optimizer: { enabled: true },
      outputSelection: { "*": { "*": ["abi", "evm.bytecode.object"] } }
    }
  }
  const output: Output = JSON.parse(solc.compile(JSON.stringify(input)))
  const errors = (output.errors ?? []).filter(({ severity }) => severity === "error")
  if (errors.length > 0) throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join("\n"))
  return (contract) => {
    const compiled = output.contracts?.source[contract]
    if (compiled === undefined) throw new Error(`no contract ${contract} in ${file}`)
    return { abi: compiled.abi, code: `0x${compiled.evm.bytecode.object}` }
  }
}
