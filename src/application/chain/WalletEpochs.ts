import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type { Address } from "../../domain/primitives/Address.js"
import * as WalletCalls from "../../domain/wallet/WalletCalls.js"
import * as WalletConfig from "../../domain/wallet/WalletConfig.js"
import type { ChainClient } from "../ports/chain/ChainRpc.js"

/**
 * The epoch of a wallet's configuration after a block, which is in its ops' nonces; null: the block has no such wallet.
 * A configuration at settled depth forbids older epochs permanently; that of the newest block may still be undone.
 */
export const at = (chain: ChainClient, wallet: Address, block: bigint) =>
  Effect.map(
    chain.call({ to: wallet, data: WalletCalls.configuration }, undefined, block),
    ({ data, success }) => {
      const configuration = WalletConfig.decode(data)
      return success && Result.isSuccess(configuration) ? WalletConfig.epochOf(configuration.success) : null
    }
  )
