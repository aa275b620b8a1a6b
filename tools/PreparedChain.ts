import { createHash, randomUUID } from "node:crypto"
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { gunzipSync } from "node:zlib"
import type { JsonRpcProvider } from "ethers"
import { type Anvil, type AnvilOptions, startAnvil } from "../src/hosts/cli/dev/Anvil.js"
import type { StartNode } from "../src/hosts/cli/dev/DevChain.js"
import { NodeProvider } from "../src/hosts/cli/support/NodeProvider.js"

const root = fileURLToPath(new URL("..", import.meta.url))
const folder = join(root, "node_modules/.cache/castellan")
const artifacts = join(root, "contracts/artifacts")

/** Changes with the contracts, and with the packages of EntryPoints and anvil. */
const ingredients = (): string => {
  const hash = createHash("sha256").update(readFileSync(join(root, "package-lock.json")))
  for (const file of readdirSync(artifacts).sort()) hash.update(readFileSync(join(artifacts, file)))
  return hash.digest("hex")
}

const connect = ({ chainId, url }: Anvil): JsonRpcProvider =>
  new NodeProvider(url, chainId, { staticNetwork: true, cacheTimeout: -1, pollingInterval: 20 })

const withProvider = async <A>(anvil: Anvil, use: (provider: JsonRpcProvider) => Promise<A>): Promise<A> => {
  const provider = connect(anvil)
  try {
    return await use(provider)
  } finally {
    provider.destroy()
  }
}

/** Keeps the states of 500 blocks in memory; anvil would write older ones, gigabytes of them, to the disk. */
const history = ["--prune-history", "500"]

/**
 * Starts an anvil after `prepare`: the first time on a fresh chain, later from its saved state. `name` identifies the
 * preparation; concurrent first starts each prepare separately.
 */
export const startPrepared = async (
  name: string,
  options: AnvilOptions,
  prepare: (provider: JsonRpcProvider) => Promise<unknown>
): Promise<Anvil> => {
  const chainId = options.chainId ?? 31337
  const own = options.args ?? []
  const key = createHash("sha256").update(JSON.stringify([name, chainId, own, ingredients()]))
  const file = join(folder, `${name}-${key.digest("hex").slice(0, 24)}.json`)
  if (!existsSync(file)) {
    const anvil = await startAnvil({ chainId, args: own })
    try {
      const dump: string = await withProvider(anvil, async (provider) => {
        await prepare(provider)
        return provider.send("anvil_dumpState", [])
      })
      mkdirSync(folder, { recursive: true })
      // Atomic: other processes may read the file.
      const draft = `${file}.${randomUUID()}`
      writeFileSync(draft, gunzipSync(Buffer.from(dump.slice(2), "hex")))
      renameSync(draft, file)
    } finally {
      await anvil.stop()
    }
  }
  const anvil = await startAnvil({ ...options, chainId, args: [...history, ...own, "--load-state", file] })
  // The saved chain's time is its latest block's, possibly yesterday's.
  await withProvider(anvil, (provider) => provider.send("evm_mine", []))
  return anvil
}

/** The prepared chain of a development stack. */
export const startNode: StartNode = (options, prepare) => startPrepared("dev", options, prepare)
