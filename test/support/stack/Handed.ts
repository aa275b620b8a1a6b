import * as Result from "effect/Result"
import * as EstimateGas from "../../../src/application/endpoints/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../src/application/endpoints/operations/ExecuteEncoded.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import { Address, type Stack } from "./Stack.js"

/** An op returned for signing, with the data to modify it. */
export interface Handed {
  readonly op: UserOperation.UserOperation
  readonly userOpHash: Hex.Bytes32
  readonly signingHash: string
  readonly bundler: string
}

/** Ops of `/estimateGas` for the service's own EOA, and their owner's acts on them. */
export const make = (stack: Stack, entryPoint: Address.Address = stack.settings.entryPoint) => {
  const version = EntryPoint.versionOf(entryPoint) ?? "v0.7"
  const settings = { rpc: stack.settings.rpc, entryPoint }
  const chainId = BigInt(stack.anvil.chainId)

  const hashed = (op: UserOperation.UserOperation): Hex.Bytes32 =>
    UserOperation.hash(version, entryPoint, chainId, op)

  const request = (
    handed: Pick<Handed, "op">,
    options: { readonly over?: string; readonly settings?: object; readonly window?: object } = {}
  ): ExecuteEncoded.Request => {
    const userOpHash = hashed(handed.op)
    return {
      operations: [
        {
          encodedUserOp: UserOperation.encode(version, handed.op),
          userOpHash,
          walletCustody: 0,
          signature: Hex.unsafe(stack.signer.signingKey.sign(options.over ?? userOpHash).serialized),
          ...options.window
        }
      ],
      settings: { ...settings, ...options.settings }
    }
  }

  return {
    settings,
    hashed,
    request,
    /** A transfer of a token by the wallet of this salt. */
    transfer: (salt: string, to: string, amount = "1"): Operation => ({
      salt,
      walletCustody: 1,
      to: Address.unsafe(String(stack.token.target)),
      funcSignature: "transfer(address,uint256)",
      funcParams: [to, amount]
    }),
    out: async (operations: ReadonlyArray<Operation>, more: object = {}): Promise<ReadonlyArray<Handed>> => {
      const { error, userOps } = await stack.ask(
        EstimateGas.run(stack.caller(), { operations, settings: { ...settings, ...more } })
      )
      if (error !== null) throw new Error(error)
      return userOps.map(({ bundler, encodedUserOp, signingHash, userOpHash }) => ({
        op: Result.getOrThrow(UserOperation.decode(version, Hex.unsafe(encodedUserOp))),
        userOpHash: Hex.unsafe32(userOpHash),
        signingHash,
        bundler
      }))
    },
    /** Posts it, signed by its owner. */
    post: (...args: Parameters<typeof request>) => ExecuteEncoded.run(stack.caller(), request(...args))
  }
}
