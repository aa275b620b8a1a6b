import { createServer } from "node:net"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"
import { Contract, type JsonRpcProvider, NonceManager } from "ethers"
import * as DevChain from "../../src/hosts/cli/dev/DevChain.js"
import { devKeys } from "../../src/hosts/cli/dev/DevKeys.js"
import * as Provider from "../../src/hosts/cli/support/Provider.js"
import * as CountingProxy from "../../tools/CountingProxy.js"
import { startNode } from "../../tools/PreparedChain.js"
import { ensure } from "./Claim.js"
import type { Context } from "./Context.js"

/** A separate chain with EntryPoints, wallet suite and an ERC-20, and a block per transaction. */
export interface World {
  readonly chain: DevChain.DevChain
  readonly provider: JsonRpcProvider
  readonly send: (method: string, ...params: ReadonlyArray<unknown>) => Promise<unknown>
  readonly faucet: NonceManager
  /** Mints this many of the ERC-20's smallest unit to each address. */
  readonly mint: (addresses: ReadonlyArray<string>) => Promise<void>
  readonly fund: (addresses: ReadonlyArray<string>) => Promise<void>
  /** Balance of the ERC-20. */
  readonly balance: (address: string) => Promise<number>
  /** Starts a recording proxy in front of the chain. */
  readonly proxy: () => Promise<CountingProxy.CountingProxy>
}

const tokenAbi = ["function mint(address,uint256)", "function balanceOf(address) view returns (uint256)"]

/** Enough for every load. */
const plenty = 10n ** 12n

export const start = async (context: Context): Promise<World> => {
  const scope = await Effect.runPromise(Scope.make())
  context.defer(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const inScope = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
    Effect.runPromise(Scope.provide(effect, scope))
  const chain = await inScope(DevChain.start({ port: 0, chainId: 31337, blockTime: null, startNode }))
  const provider = await inScope(Provider.connect(chain.url, chain.chainId))
  const faucet = new NonceManager(devKeys.faucet.connect(provider))
  const token = new Contract(chain.token, tokenAbi, faucet)
  const send = (method: string, ...params: ReadonlyArray<unknown>) => provider.send(method, [...params])
  return {
    chain,
    provider,
    send,
    faucet,
    mint: async (addresses) => {
      let last: { readonly hash: string } | undefined
      for (const address of addresses) last = await token.getFunction("mint")(address, plenty)
      while (last !== undefined && (await provider.getTransactionReceipt(last.hash)) === null)
        await new Promise((resolve) => setTimeout(resolve, 10))
    },
    fund: async (addresses) => {
      for (const address of addresses)
        await send("anvil_setBalance", address, `0x${(10n ** 21n).toString(16)}`)
    },
    balance: async (address) => Number(await token.getFunction("balanceOf")(address)),
    proxy: () => inScope(CountingProxy.start(chain.url))
  }
}

/** Fails unless all these addresses have code. */
export const ensureCode = async ({ provider }: World, addresses: ReadonlyArray<string>): Promise<void> => {
  for (const address of addresses)
    ensure((await provider.getCode(address)) !== "0x", `${address} has no code`)
}

export const freePort = (): Promise<number> =>
  new Promise((resolve) => {
    const probe = createServer().listen(0, "127.0.0.1", () => {
      const address = probe.address()
      probe.close(() => resolve(typeof address === "object" && address !== null ? address.port : 0))
    })
  })
