import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Gas from "../../../domain/erc4337/gas/Gas.js"
import type * as GasLens from "../../../domain/erc4337/gas/GasLens.js"
import * as Nonce from "../../../domain/erc4337/Nonce.js"
import * as PaymasterCalls from "../../../domain/erc4337/paymaster/PaymasterCalls.js"
import type * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Keccak from "../../../domain/primitives/Keccak.js"
import * as Words from "../../../domain/primitives/Words.js"
import * as Deployment from "../../../domain/wallet/Deployment.js"
import * as Reads from "../../chain/Reads.js"
import type { CallResult, ChainClient, ChainRpcError } from "../../ports/chain/ChainRpc.js"
import * as FallbackPaymaster from "./FallbackPaymaster.js"

/**
 * Measures like the gas lens by `eth_estimateGas` and `eth_call` in the name of the EntryPoint, for nodes that take no
 * state overrides. Every op is measured separately on the latest block, so an op that needs an earlier one of its
 * request fails. Figures are never below the lens's: they include gas of a transaction around the frame.
 */

/** Bookkeeping around a validation: the deposit and a used key's nonce; a key's first op adds `firstOfKey`. */
const bookkeeping = 14_000n
const firstOfKey = 20_000n
/** A creation by the suite's factory: with a configuration of one owner, and per additional word. */
const creation = 150_000n
const creationPerWord = 24_000n
/** The validation of a creation op by the deployer. */
const creationValidation = 30_000n

const balanceOf = Keccak.selector("balanceOf(address)")
const implementationOf = Keccak.selector("implementation()")

const word = (data: Hex.Hex): bigint => Words.readUint(Words.read(data), 0)

const nothing = {
  ...FallbackPaymaster.nothing,
  creationGas: 0n,
  validationGas: 0n,
  bookkeepingGas: 0n,
  callGas: 0n,
  callLimit: 0n,
  validationData: 0n,
  shortfall: 0n,
  coldValidation: true,
  coldCall: true
}

/** Gas of a creation, by its size; null when it is not by the suite. */
const creationGasOf = (initCode: Hex.Hex): bigint | null =>
  Result.match(Deployment.parse(initCode), {
    onFailure: () => null,
    onSuccess: ({ deployment: { config } }) =>
      creation + creationPerWord * BigInt(Math.max(0, config.owners.length - 1) + 2 * config.passkeys.length)
  })

/** Wordings of nodes whose `eth_call` has only two parameters. */
const tooManyParameters =
  /too many (?:arguments|params)|expect(?:ed|s|ing).{0,40}param|invalid params|overrid/i

/** Whether a node's answer to the lens's call shows that it refuses or ignores state overrides. */
export const isWithoutOverrides = (answer: Result.Result<CallResult, ChainRpcError>): boolean =>
  Result.match(answer, {
    onFailure: ({ message, reason }) =>
      (reason === "rejected" || reason === "unsupported") && tooManyParameters.test(message),
    // Without the override, the EntryPoint has no such function and reverts without data.
    onSuccess: ({ data, success }) => !success && data === Hex.empty
  })

type Questions = GasLens.Request & { readonly nonceKeys: ReadonlyArray<bigint> }

/** Measures the wallet's part of an op; `state` is the wallet's state. */
const measureWallet = (
  chain: ChainClient,
  { entryPoint, nonceKeys }: Pick<Questions, "entryPoint" | "nonceKeys">,
  probe: GasLens.Probe,
  state: GasLens.WalletState | undefined
): Effect.Effect<GasLens.Measure, ChainRpcError> =>
  Effect.gen(function* () {
    const { callData, callGas, initCode, nonce, paymaster, requiredPrefund, sender, verificationGas } = probe
    const { balance = 0n, deposit = 0n, sequences = [] } = state ?? {}
    const sequence = sequences[nonceKeys.indexOf(Nonce.keyOf(nonce))]
    const owed = paymaster === null ? BigInts.max(0n, requiredPrefund - deposit) : 0n
    const creationGas = initCode === Hex.empty ? 0n : creationGasOf(initCode)
    const found = {
      ...nothing,
      nonceAccepted: sequence === undefined || sequence === Nonce.sequenceOf(nonce),
      creationGas: creationGas ?? 0n,
      bookkeepingGas: bookkeeping + (sequence === 0n ? firstOfKey : 0n),
      shortfall: BigInts.max(0n, owed - balance)
    }
    if (creationGas === null) return { ...found, stage: "creation" as const }
    if (creationGas > 0n) return { ...found, stage: "ok" as const, validationGas: creationValidation }
    const validate = PaymasterCalls.withMissing(probe.validateCall, owed <= balance ? owed : 0n)
    const inName = { from: entryPoint, to: sender }
    const [validated, validation, called, returned] = yield* Effect.all(
      [
        chain.estimateGas({ ...inName, data: validate }),
        chain.call({ ...inName, data: validate }),
        callData === Hex.empty
          ? Effect.succeed({ success: true, gas: 0n, data: Hex.empty })
          : chain.estimateGas({ ...inName, data: callData }),
        callData === Hex.empty
          ? Effect.succeed({ success: true, data: Hex.empty })
          : chain.call({ ...inName, data: callData })
      ],
      { concurrency: "unbounded" }
    )
    const validationGas = FallbackPaymaster.frameOf(validated.gas, validate)
    const measured = { ...found, validationGas, validationData: word(validation.data) }
    if (!validated.success) return { ...measured, stage: "validation" as const, data: validated.data }
    if (validationGas > verificationGas) return { ...measured, stage: "validation" as const }
    if (!called.success) return { ...measured, stage: "call" as const, data: called.data }
    const frame = callData === Hex.empty ? 0n : FallbackPaymaster.frameOf(called.gas, callData)
    const spent = { ...measured, callGas: frame, callLimit: Gas.unverifiedLimit(frame) }
    if (spent.callGas > callGas) return { ...spent, stage: "call" as const }
    return {
      ...spent,
      stage: returned.success ? ("ok" as const) : ("call" as const),
      data: returned.data
    }
  })

/** Returns the report that the lens would give. */
export const measure = (
  chain: ChainClient,
  request: Questions
): Effect.Effect<GasLens.Report, ChainRpcError> =>
  Effect.gen(function* () {
    const { beacon, entryPoint, nonceKeys, probes } = request
    const senders = [
      ...new Set([
        ...request.wallets,
        ...probes.flatMap(({ paymaster, sender }) => [sender, paymaster?.address ?? sender])
      ])
    ]
    const ask = (data: Hex.Hex) => Effect.map(chain.call({ to: entryPoint, data }), ({ data }) => word(data))
    const stateOf = (wallet: Address.Address): Effect.Effect<GasLens.WalletState, ChainRpcError> =>
      Effect.map(
        Effect.all(
          [
            ask(Words.call(balanceOf, [Words.address(wallet)])),
            chain.balance(wallet),
            chain.code(wallet),
            Effect.forEach(
              nonceKeys,
              (key) => Effect.map(ask(Nonce.getNonceCall(wallet, key)), Nonce.sequenceOf),
              {
                concurrency: "unbounded"
              }
            )
          ],
          { concurrency: "unbounded" }
        ),
        ([deposit, balance, code, sequences]) => ({
          deposit,
          balance,
          deployed: code !== Hex.empty,
          codeHash: Keccak.hash(code),
          sequences
        })
      )
    const [chainId, block, states, implementation] = yield* Effect.all(
      [
        chain.chainId,
        chain.block("latest"),
        Effect.forEach(senders, stateOf, { concurrency: "unbounded" }),
        beacon === undefined ? Effect.succeed(null) : Reads.addressAt(chain, beacon, implementationOf)
      ],
      { concurrency: "unbounded" }
    )
    const known = new Map(senders.map((sender, position) => [sender, states[position]]))

    const measureOne = (probe: GasLens.Probe): Effect.Effect<GasLens.Measure, ChainRpcError> => {
      const { paymaster, sender } = probe
      const wallet = measureWallet(chain, request, probe, known.get(sender))
      if (paymaster === null) return wallet
      const deposit = known.get(paymaster.address)?.deposit ?? 0n
      return Effect.map(
        Effect.all([wallet, FallbackPaymaster.measure(chain, entryPoint, probe, paymaster, deposit)], {
          concurrency: "unbounded"
        }),
        ([own, { data, stage, ...approval }]) =>
          own.stage !== "ok" || stage === "ok"
            ? { ...own, ...approval }
            : { ...own, ...approval, stage, data }
      )
    }

    const [measures, code] = yield* Effect.all(
      [
        Effect.forEach(probes, measureOne, { concurrency: "unbounded" }),
        implementation === null ? Effect.succeed(Hex.empty) : chain.code(implementation)
      ],
      { concurrency: "unbounded" }
    )
    return {
      chainId,
      block: {
        number: block?.number ?? 0n,
        timestamp: BigInt(block?.timestamp ?? 0),
        baseFee: block?.baseFeePerGas ?? 0n,
        gasLimit: block?.gasLimit ?? 0n
      },
      implementation:
        implementation === null ? null : { address: implementation, codeHash: Keccak.hash(code) },
      wallets: request.wallets.flatMap((wallet) => known.get(wallet) ?? []),
      measures
    }
  })
