import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { Part } from "../../../src/application/payers/Payer.js"
import type { Site } from "../../../src/application/payers/Paymaster.js"
import type { Call, CallResult } from "../../../src/application/ports/chain/ChainRpc.js"
import type { Signer } from "../../../src/application/ports/Signers.js"
import * as EntryPoint from "../../../src/domain/erc4337/EntryPoint.js"
import * as PaymasterData from "../../../src/domain/erc4337/paymaster/PaymasterData.js"
import * as UserOperation from "../../../src/domain/erc4337/UserOperation.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import * as Uint from "../../../src/domain/primitives/Uint.js"
import * as Make from "../../support/journal/Make.js"
import * as Monitor from "../../support/lanes/Monitor.js"

export const version = "v0.7"
export const entryPoint = EntryPoint.canonical[version]
export const paymaster = Make.address(0x5a)

/** The chain's time, in its block 7. */
export const now = 1_700_000_000

const block = {
  number: 7n,
  hash: Make.word(7),
  timestamp: now,
  gasLimit: 30_000_000n,
  baseFeePerGas: 1n
}

/** An account's request, with the operator's node reporting this deposit of the paymaster. */
export const make = (
  deposit: bigint,
  over: Partial<Pick<Site, "bundler">> & {
    readonly accountId?: typeof Make.alice
  } = {}
) =>
  Effect.gen(function* () {
    const { chain } = yield* Monitor.node("operator")
    const { accountId = Make.alice, bundler = Make.lane.signer } = over
    const calls: Array<Call> = []
    const reads = { blocks: 0 }
    const answer: { call: CallResult } = {
      call: { success: true, data: Hex.unsafe(`0x${Uint.toWord(deposit)}`) }
    }
    const site: Site = {
      accountId,
      connection: {
        chain: {
          ...chain,
          block: () =>
            Effect.sync(() => {
              reads.blocks += 1
              return block
            }),
          call: (call) =>
            Effect.sync(() => {
              calls.push(call)
              return answer.call
            })
        },
        profile: Monitor.profile,
        trust: "operator",
        rpc: Redacted.make("http://operator")
      },
      entryPoint,
      version,
      paymaster,
      bundler
    }
    return { answer, calls, reads, site }
  })

/** A key that makes this signature of all digests, and records them. */
export const key = (signed: Array<Hex.Bytes32>, signature: Hex.Hex): Signer => ({
  address: Make.address(1),
  publicKey: "04",
  type: "PRIVATE_KEY",
  sign: (digest) =>
    Effect.sync(() => {
      signed.push(digest)
      return signature
    })
})

/** Costs 100,000,000 wei at most. */
export const op: UserOperation.UserOperation = {
  sender: Make.address(0xa1),
  nonce: 1n,
  initCode: Hex.empty,
  callData: Hex.empty,
  callGasLimit: 400_000n,
  verificationGasLimit: 300_000n,
  preVerificationGas: 300_000n,
  maxFeePerGas: 100n,
  maxPriorityFeePerGas: 10n,
  paymasterAndData: Hex.empty,
  signature: Hex.empty
}
export const cost = 100n * 1_000_000n

export const hashOf = (of: UserOperation.UserOperation) =>
  UserOperation.hash(version, entryPoint, Make.chainId, of)

/** Part of an op that the service built. */
export const part = (of: UserOperation.UserOperation, index = 0, requestId = "r"): Part => ({
  requestId,
  index,
  given: null,
  op: of
})

/** Part of an encoded op. */
export const givenPart = (of: UserOperation.UserOperation, index = 0): Part => ({
  ...part(of, index),
  given: hashOf(of)
})

export const dataOf = (data: Hex.Hex, limits = PaymasterData.noLimits): Hex.Hex =>
  PaymasterData.make(version, { paymaster, limits, data })

export const codes = (failed: ReadonlyArray<{ readonly code: string } | null>) =>
  failed.flatMap((failure, place) => (failure === null ? [] : [[place, failure.code]]))
