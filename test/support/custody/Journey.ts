import * as Effect from "effect/Effect"
import { Contract, hexlify, randomBytes } from "ethers"
import { expect } from "vitest"
import type { Executed } from "../../../src/application/answers/TransactionResult.js"
import * as GetReceipts from "../../../src/application/endpoints/chain/GetReceipts.js"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/endpoints/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import * as ExecutePasskey from "../../../src/application/endpoints/operations/ExecutePasskey.js"
import * as PasskeyHash from "../../../src/application/endpoints/operations/PasskeyHash.js"
import * as CheckWallets from "../../../src/application/endpoints/wallets/CheckWallets.js"
import * as CreateWallets from "../../../src/application/endpoints/wallets/CreateWallets.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { artifact } from "../../../src/hosts/cli/deploy/Artifacts.js"
import { type EntryPointVersion, entryPoints } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import type { Stack } from "../stack/Stack.js"
import { at } from "../suite/Chain.js"
import { type Config, saltHash } from "../suite/Layouts.js"
import { configurationOf } from "../suite/Ops.js"
import type { Assertion } from "./Authenticator.js"

export type Account = CreateWallets.Request["accounts"][number]

interface HandedOut {
  readonly encodedUserOp: string
  readonly userOpHash: string
}

/** The account's second signer. */
export const second = { clientId: "dev", versionId: "2" }

/** A random address without any transactions. */
export const recipient = (): Address.Address => Address.unsafe(hexlify(randomBytes(20)))

const ether = 10n ** 18n

/** A customer's actions on the service through one EntryPoint, and the resulting chain state. */
export const make = (stack: Stack, version: EntryPointVersion) => {
  const settings = { ...stack.settings, entryPoint: Address.unsafe(entryPoints[version]) }
  const ownless = { rpc: settings.rpc, entryPoint: settings.entryPoint }
  const sponsored = { paymaster: Address.unsafe(stack.suite.paymaster) }
  const factory = new Contract(stack.suite.factory, artifact("WalletFactory").abi, stack.provider)

  /** The wallet address that the factory predicts. */
  const addressOf = async (salt: string, custody: number, legacy = false): Promise<Address.Address> =>
    Address.unsafe(
      await factory
        .getFunction("getAddress(bytes32,uint256,bool)")
        .staticCall(saltHash(salt), custody, legacy)
    )
  const create = (accounts: ReadonlyArray<Account>, more: object = {}) =>
    CreateWallets.run(stack.caller(), { accounts, settings: { ...settings, ...more } })

  /** The one receipt of a transaction, which must have succeeded. */
  const receiptOf = async (txHash: string) => {
    const { receipts } = await stack.ask(
      GetReceipts.run(stack.caller(), { txHashes: [Hex.unsafe32(txHash)], rpc: settings.rpc })
    )
    expect(receipts).toMatchObject([{ status: 1, txHash }])
    return receipts[0]
  }

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
    /** Names the operator's own paymaster in settings. */
    sponsored,
    /** A wallet of this account with a thousand tokens and no funds for gas. */
    createdPoor: async (account: Account & { readonly salt: string }): Promise<Address.Address> => {
      const wallet = await addressOf(account.salt, account.walletCustody, account.legacyWallet)
      await stack.mint(wallet, 1_000n)
      const failure = await stack.refused(create([account]))
      expect(failure.message).toBe("insufficient funds")
      expect(await stack.ask(create([account], sponsored))).toMatchObject({
        status: 1,
        returnData: [{ "0": { salt: account.salt, wallet } }]
      })
      expect(await stack.provider.getBalance(wallet)).toBe(0n)
      return wallet
    },
    /** A transfer of one token to `to`, by the wallet. */
    transfer: (wallet: string, to: string): Operation => ({
      wallet,
      walletCustody: 0,
      to: Address.unsafe(String(stack.token.target)),
      funcSignature: "transfer(address,uint256)",
      funcParams: [to, "1"]
    }),
    execute: (operation: Operation, more: object = {}) =>
      ExecuteOperations.run(stack.caller(), {
        operations: [operation],
        settings: { ...settings, ...more }
      }),
    /** The operation's op from `/estimateGas`. */
    estimated: async (operation: Operation, more: object = {}) => {
      const { error, status, userOps } = await stack.ask(
        EstimateGas.run(stack.caller(), { operations: [operation], settings: { ...settings, ...more } })
      )
      expect({ error, status }).toEqual({ error: null, status: 1 })
      const [op] = userOps
      if (op === undefined) throw new Error("no op")
      return op
    },
    executeEncoded: (op: HandedOut, signature: string | undefined, more: object = {}) =>
      ExecuteEncoded.run(stack.caller(), {
        operations: [
          {
            encodedUserOp: Hex.unsafe(op.encodedUserOp),
            userOpHash: Hex.unsafe32(op.userOpHash),
            walletCustody: 0,
            ...(signature !== undefined && { signature: Hex.unsafe(signature) })
          }
        ],
        settings: { ...settings, ...more }
      }),
    /** The operation's op from `/passkeyHash`. */
    hashed: async (operation: Operation, more: object = {}) => {
      const { results, status } = await stack.ask(
        PasskeyHash.run(stack.caller(), { operations: [operation], settings: { ...ownless, ...more } })
      )
      const { bundler, encodedUserOp, error, signingHash, userOpHash } = results[0] ?? {}
      expect({ error, status }).toEqual({ error: null, status: 0 })
      return {
        bundler,
        encodedUserOp: String(encodedUserOp),
        signingHash: String(signingHash),
        userOpHash: String(userOpHash)
      }
    },
    executePasskey: (op: HandedOut, validationData: Assertion, more: object = {}, by = stack.caller()) =>
      ExecutePasskey.run(by, {
        operations: [
          {
            encodedUserOp: Hex.unsafe(op.encodedUserOp),
            userOpHash: Hex.unsafe32(op.userOpHash),
            validationData
          }
        ],
        settings: { ...ownless, ...more }
      }),
    check: (account: CheckWallets.Request["accounts"][number]) =>
      stack.ask(
        Effect.map(
          CheckWallets.run(stack.caller(), { accounts: [account], settings: { rpc: settings.rpc } }),
          ([element]) => element
        )
      ),
    configurationOf: async (wallet: string): Promise<Config> =>
      (await configurationOf(at("Wallet", wallet, stack))).config,
    receiptOf,
    /** Checks that response, chain and receipt agree: the wallet has sent one token to `to`. */
    transferred: async (answer: Executed, wallet: string, to: string): Promise<void> => {
      expect(answer).toMatchObject({ status: 1, returnData: [{ "0": { success: true, error: null } }] })
      expect(await stack.balanceOf(to)).toBe(1n)
      expect((await receiptOf(answer.txHash))?.logs).toContainEqual(
        expect.objectContaining({ eventName: "Transfer", args: { from: wallet, to, value: "1" } })
      )
    }
  }
}

export type Journey = ReturnType<typeof make>
