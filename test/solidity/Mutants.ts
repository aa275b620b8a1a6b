import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { compile } from "../../contracts/compile.js"
import * as Forge from "./Forge.js"

/** One fault, planted into a copy of a source: the invariant has to break, or it proves nothing. */
export interface Mutant {
  /** The mutant's mistake. */
  readonly name: string
  /** Source below `contracts/src`, without its ending. */
  readonly source: string
  /** Text that occurs once in the source, and its replacement in the mutant. */
  readonly find: string
  readonly replace: string
  /** The contract that is deployed with the fault. */
  readonly contract: string
  /** The test function that detects it. */
  readonly seenBy: string
}

export interface Outcome {
  readonly name: string
  readonly caught: boolean
  readonly why: string
}

const list: ReadonlyArray<Mutant> = JSON.parse(readFileSync(new URL("mutants.json", import.meta.url), "utf8"))

const folder = "test-output/forge/mutants"

/** Compiles the contract with the fault and returns the artifact's path. */
const plant = ({ contract, find, name, replace, source }: Mutant): string => {
  const text = readFileSync(`${Forge.root}/contracts/src/${source}.sol`, "utf8")
  if (text.split(find).length !== 2)
    throw new Error(`mutant "${name}": its text is not once in ${source}.sol`)
  const patched = new Map([[`src/${source}.sol`, text.replace(find, () => replace)]])
  const artifact = compile([contract], "plain", patched).find(({ contractName }) => contractName === contract)
  const path = `${folder}/${contract}-${name.replaceAll(/\W+/g, "-")}.json`
  mkdirSync(`${Forge.root}/${folder}`, { recursive: true })
  writeFileSync(`${Forge.root}/${path}`, JSON.stringify(artifact))
  return path
}

/** Caught when the test ran, and failed on its assertion. */
const judge = (mutant: Mutant, { failed, output }: Forge.Run): Outcome => {
  const line = output.split("\n").find((text) => text.startsWith("[FAIL")) ?? ""
  const asserted = line !== "" && !line.includes("setUp()")
  return {
    name: mutant.name,
    caught: failed > 0 && asserted,
    why: line === "" ? `${mutant.seenBy} saw nothing` : line.slice(0, 160)
  }
}

export const run = (names: ReadonlyArray<string> = []): ReadonlyArray<Outcome> =>
  list
    .filter(({ name }) => names.length === 0 || names.includes(name))
    .map((mutant) =>
      judge(
        mutant,
        Forge.run("test", ["--match-test", `^${mutant.seenBy}\\(`], {
          [`CASTELLAN_CODE_${mutant.contract}`]: plant(mutant),
          FOUNDRY_INVARIANT_SHRINK_RUN_LIMIT: "0",
          FOUNDRY_INVARIANT_FAILURE_PERSIST_DIR: "test-output/forge/mutants/failures",
          FOUNDRY_FUZZ_FAILURE_PERSIST_DIR: "test-output/forge/mutants/failures"
        })
      )
    )
