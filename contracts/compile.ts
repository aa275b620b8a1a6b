import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import * as Reference from "./Reference.js"
import * as Solc from "./Solc.js"

/** The committed form of one compiled contract, keys in this order. */
export interface Artifact {
  readonly contractName: string
  readonly abi: ReadonlyArray<unknown>
  /** Creation code without constructor arguments, 0x hex. */
  readonly bytecode: string
  /** Runtime code; immutables are zero words at `immutableReferences`. */
  readonly deployedBytecode: string
  /** By immutable's name: places in the runtime code that the constructor fills, in bytes. */
  readonly immutableReferences?: Readonly<Record<string, ReadonlyArray<Range>>>
}

interface Range {
  readonly start: number
  readonly length: number
}

interface AstNode {
  readonly nodeType: string
  readonly id: number
  readonly name?: string
  readonly abstract?: boolean
  readonly contractKind?: string
  readonly mutability?: string
  readonly nodes?: ReadonlyArray<AstNode>
}

interface SolcOutput {
  readonly errors?: ReadonlyArray<{
    readonly severity: string
    readonly formattedMessage: string
    readonly sourceLocation?: { readonly file: string }
  }>
  readonly sources?: Readonly<Record<string, { readonly ast: AstNode }>>
  readonly contracts?: Readonly<Record<string, Readonly<Record<string, SolcContract>>>>
}

interface SolcContract {
  readonly abi: ReadonlyArray<unknown>
  readonly evm: {
    readonly bytecode: { readonly object: string }
    readonly deployedBytecode: {
      readonly object: string
      readonly immutableReferences: Readonly<Record<string, ReadonlyArray<Range>>>
    }
  }
}

/** `plain` is without the optimiser, but for the stack allocation that an assembly block of OpenZeppelin's P256 needs. */
export type Pipeline = "ir" | "legacy" | "plain"

const unoptimised = {
  enabled: false,
  details: { yul: true, yulDetails: { stackAllocation: true, optimizerSteps: ":" } }
}

const here = dirname(fileURLToPath(import.meta.url))
const sourceRoot = join(here, "src")
const artifactRoot = join(here, "artifacts")
const projectRoot = join(here, "..")

/** Every `contracts/src/**\/*.sol`, as `src/...` with forward slashes, sorted. */
const sourceNames = (): ReadonlyArray<string> =>
  readdirSync(sourceRoot, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".sol"))
    .map((entry) => `src/${relative(sourceRoot, join(entry.parentPath, entry.name)).replaceAll("\\", "/")}`)
    .sort()

/** The contracts that a file defines and that can be deployed. */
const deployable = (ast: AstNode): ReadonlyArray<string> =>
  (ast.nodes ?? []).flatMap((node) =>
    node.nodeType === "ContractDefinition" && node.contractKind === "contract" && node.abstract !== true
      ? [node.name ?? ""]
      : []
  )

const immutableNames = (output: SolcOutput): ReadonlyMap<string, string> =>
  new Map(
    Object.values(output.sources ?? {})
      .flatMap((source) => source.ast.nodes ?? [])
      .flatMap((node) => (node.nodeType === "ContractDefinition" ? (node.nodes ?? []) : []))
      .flatMap((node) => (node.mutability === "immutable" ? [[String(node.id), node.name ?? ""]] : []))
      .map(([id = "", name = ""]) => [id, name] as const)
  )

const toArtifact = (
  contractName: string,
  contract: SolcContract,
  names: ReadonlyMap<string, string>
): Artifact => {
  const references = Object.entries(contract.evm.deployedBytecode.immutableReferences)
    .map(([id, ranges]) => [names.get(id) ?? id, ranges] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    contractName,
    abi: contract.abi,
    bytecode: `0x${contract.evm.bytecode.object}`,
    deployedBytecode: `0x${contract.evm.deployedBytecode.object}`,
    ...(references.length > 0 && { immutableReferences: Object.fromEntries(references) })
  }
}

/** Compiles one file by itself, so that its code depends only on its own imports. */
const compileSource = (name: string, pipeline: Pipeline, patches: Solc.Patches): ReadonlyArray<Artifact> => {
  const settings = {
    viaIR: pipeline === "ir",
    optimizer: pipeline === "plain" ? unoptimised : { enabled: true, runs: 20_000 },
    metadata: { bytecodeHash: "none", appendCBOR: false },
    outputSelection: {
      "*": {
        "": ["ast"],
        "*": [
          "abi",
          "evm.bytecode.object",
          "evm.deployedBytecode.object",
          "evm.deployedBytecode.immutableReferences"
        ]
      }
    }
  }
  const output: SolcOutput = JSON.parse(Solc.solve([name], settings, patches))
  const complaints = (output.errors ?? []).filter(
    ({ severity, sourceLocation }) =>
      // A planted fault may well leave something unused.
      severity === "error" || (patches.size === 0 && (sourceLocation?.file ?? "src/").startsWith("src/"))
  )
  if (complaints.length > 0) throw new Error(complaints.map((error) => error.formattedMessage).join("\n"))
  const ast = output.sources?.[name]?.ast
  if (ast === undefined) throw new Error(`solc returned nothing for ${name}`)
  const names = immutableNames(output)
  const compiled = new Map(Object.values(output.contracts ?? {}).flatMap((file) => Object.entries(file)))
  return deployable(ast).map((contractName) => {
    const contract = compiled.get(contractName)
    if (contract === undefined) throw new Error(`${name} names ${contractName}, which solc did not compile`)
    return toArtifact(contractName, contract, names)
  })
}

/** Compiles the sources, or those with the given base names; throws with solc's messages on any complaint. */
export const compile = (
  only: ReadonlyArray<string> = [],
  pipeline: Pipeline = "ir",
  patches: Solc.Patches = new Map()
): ReadonlyArray<Artifact> => {
  const wanted = sourceNames().filter(
    (name) => only.length === 0 || only.some((base) => name.endsWith(`/${base}.sol`))
  )
  if (wanted.length < only.length) throw new Error(`no such source among ${only.join(", ")}`)
  return wanted.flatMap((name) => compileSource(name, pipeline, patches))
}

const pinned = (doc: string, constant: string, hex: string): string =>
  `// Generated by \`npm run contracts\`; do not edit.\n\n/** ${doc} */\nexport const ${constant} =\n  "${hex}" as const\n`

/** Every committed file of these artifacts: path relative to the project's root, and content. */
export const outputs = (artifacts: ReadonlyArray<Artifact>): ReadonlyMap<string, string> => {
  const files = new Map<string, string>()
  for (const artifact of artifacts) {
    files.set(`contracts/artifacts/${artifact.contractName}.json`, `${JSON.stringify(artifact, null, 2)}\n`)
    if (artifact.contractName === "GasLens")
      files.set(
        "src/domain/erc4337/gas/GasLens.generated.ts",
        pinned("Runtime code of the gas lens.", "gasLensRuntime", artifact.deployedBytecode)
      )
    if (artifact.contractName === "WalletProxy")
      files.set(
        "src/domain/wallet/WalletProxy.generated.ts",
        pinned(
          "Creation code of the wallet proxy without its constructor arguments (address beacon, bytes data).",
          "walletProxyCreationCode",
          artifact.bytecode
        )
      )
  }
  return files
}

/** Recompiles and names every committed file that differs, is missing, or no longer has a source. */
const differences = (): ReadonlyArray<string> => {
  const expected = new Map([...outputs(compile()), [Reference.path, Reference.page()]])
  const stray = readdirSync(artifactRoot)
    .map((file) => `contracts/artifacts/${file}`)
    .filter((path) => !expected.has(path))
  const changed = [...expected].flatMap(([path, content]) => {
    try {
      return readFileSync(join(projectRoot, path), "utf8") === content ? [] : [path]
    } catch {
      return [path]
    }
  })
  return [...stray, ...changed]
}

const usage = "npm run contracts -- [--check | --legacy] [source base names, e.g. Wallet WalletFactory]"

/**
 * No option: compile (all or the named sources) with the IR pipeline and write the committed files.
 * `--check`: recompile all, write nothing, fail on any difference. `--legacy`: compile fast with the legacy
 * pipeline to see the compiler's complaints, write nothing.
 */
const main = (args: ReadonlyArray<string>): number => {
  const unknown = args.filter((arg) => arg.startsWith("-") && arg !== "--check" && arg !== "--legacy")
  if (unknown.length > 0) {
    console.error(`unknown option ${unknown.join(" ")}\n${usage}`)
    return 2
  }
  const names = args.filter((arg) => !arg.startsWith("-"))
  if (args.includes("--check")) {
    const differing = differences()
    for (const path of differing) console.error(`differs from its source: ${path}`)
    return differing.length === 0 ? 0 : 1
  }
  const legacy = args.includes("--legacy")
  const artifacts = compile(names, legacy ? "legacy" : "ir")
  for (const artifact of artifacts)
    console.log(`${artifact.contractName}: ${(artifact.deployedBytecode.length - 2) / 2} bytes`)
  if (legacy) return 0
  for (const [path, content] of [...outputs(artifacts), [Reference.path, Reference.page()] as const]) {
    mkdirSync(dirname(join(projectRoot, path)), { recursive: true })
    writeFileSync(join(projectRoot, path), content)
  }
  return 0
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    process.exitCode = main(process.argv.slice(2))
  } catch (cause) {
    console.error(cause instanceof Error ? cause.message : String(cause))
    process.exitCode = 1
  }
}
