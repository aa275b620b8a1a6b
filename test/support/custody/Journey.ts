import * as Effect from "effect/Effect"
import { Contract } from "ethers"
import { expect } from "vitest"
import * as GetReceipts from "../../../src/application/chain/GetReceipts.js"
import * as CheckWallets from "../../../src/application/wallet/CheckWallets.js"
import * as CreateWallets from "../../../src/application/wallet/CreateWallets.js"
import * as Address from "../../../src/domain/evm/Address.js"
import * as Hex from "../../../src/domain/evm/Hex.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { type EntryPointVersion, entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import type { Stack } from "../stack/Stack.js"
import { at } from "../suite/Chain.js"
import { type Config, saltHash } from "../suite/Layouts.js"
import { configurationOf } from "../suite/Ops.js"

export type Account = CreateWallets.Request["accounts"][number]

const ether = 10n ** 18n

/** What a customer does with the service, through one EntryPoint, and what the chain says of it. */
export const make = (stack: Stack, version: EntryPointVersion) => {
  const settings = { ...stack.settings, entryPoint: Address.unsafe(entryPoints[version]) }
  const factory = new Contract(stack.suite.factory, artifact("WalletFactory").abi, stack.provider)

  /** Where the factory itself says that the wallet will stand. */
  const addressOf = async (salt: string, custody: number, legacy = false): Promise<Address.Address> =>
    Address.unsafe(
      await factory
        .getFunction("getAddress(bytes32,uint256,bool)")
        .staticCall(saltHash(salt), custody, legacy)
    )
  const create = (accounts: ReadonlyArray<Account>, more: object = {}) =>
    CreateWallets.run(stack.caller(), { accounts, settings: { ...settings, ...more } })

  return {
    settings,
    addressOf,
    create,
    /** A wallet of this account with one ether and a thousand tokens. */
    created: async (account: Account & { readonly salt: string }): Promise<Address.Address> => {
      const wallet = await addressOf(account.salt, account.walletCustody, account.legacyWallet)
      await stack.fund(wallet, ether)
      await stack.mint(wallet, 1_000n)
      expect(await stack.ask(create([account]))).toMatchObject({
        status: 1,
        returnData: [{ "0": { salt: account.salt, wallet } }]
      })
      return wallet
    },
    check: (account: CheckWallets.Request["accounts"][number]) =>
      stack.ask(
        Effect.map(
          CheckWallets.run(stack.caller(), { accounts: [account], settings: { rpc: settings.rpc } }),
          ([element]) => element
        )
      ),
    configurationOf: async (wallet: string): Promise<Config> =>
      (await configurationOf(at("Wallet", wallet, stack))).config,
    /** The one receipt of a transaction, which must have succeeded. */
    receiptOf: async (txHash: string) => {
      const { receipts } = await stack.ask(
        GetReceipts.run(stack.caller(), { txHashes: [Hex.unsafe32(txHash)], rpc: settings.rpc })
      )
      expect(receipts).toMatchObject([{ status: 1, txHash }])
      return receipts[0]
    }
  }
}

export type Journey = ReturnType<typeof make>
