#!/usr/bin/env node
import { readFileSync } from "node:fs"
import { createRequire } from "node:module"

/**
 * npm's solc with the two commands of the native compiler that forge calls: `--version` and `--standard-json`.
 *
 * Code is compiled for the oldest hardfork that the suite supports, whatever hardfork forge executes on. forge asks for
 * unoptimised code; one assembly block of OpenZeppelin's P256 still needs the optimiser's stack allocation, and no
 * other optimisation.
 */
const solc = createRequire(import.meta.url)("solc")

const compile = (input) => {
  const { settings } = input
  settings.evmVersion = "cancun"
  if (settings.optimizer?.enabled !== true)
    settings.optimizer = {
      enabled: false,
      details: { yul: true, yulDetails: { stackAllocation: true, optimizerSteps: ":" } }
    }
  return solc.compile(JSON.stringify(input))
}

if (process.argv.includes("--version"))
  console.log(
    `solc, the solidity compiler\nVersion: ${solc.version().replace("Emscripten.clang", "Linux.g++")}`
  )
else process.stdout.write(compile(JSON.parse(readFileSync(0, "utf8"))))
