import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as UserOperation from "../../domain/erc4337/UserOperation.js"
import * as Hex from "../../domain/primitives/Hex.js"
import * as Conditions from "../../domain/signature/Conditions.js"
import * as Proof from "../../domain/signature/Proof.js"
import * as Deployment from "../../domain/wallet/Deployment.js"
import * as EstimationDeployer from "../../domain/wallet/EstimationDeployer.js"
import { type ElementFailure, elementFailure } from "../failures/Elements.js"
import { type Failure, invalid, type RefusalDetail, unprocessable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import * as Funding from "../payers/Funding.js"
import * as Payer from "../payers/Payer.js"
import * as Submitter from "../payers/Submitter.js"
import type { PreparedOp } from "../ports/journal/Records.js"
import * as EventLoop from "../runtime/EventLoop.js"
import type { CreationCall } from "./Call.js"
import * as Estimation from "./estimate/Estimation.js"
import type * as InitialSimulation from "./estimate/InitialSimulation.js"
import * as Preparation from "./Preparation.js"
import * as Snapshot from "./Snapshot.js"
import * as WalletSpecs from "./wallets/WalletSpecs.js"

/**
 * Prepares ops that deploy wallets. The deployer signs when they are sent. Until then their initCode holds a signature
 * of the estimation key, and their hashes are not final.
 */

export type Input = Preparation.Input<CreationCall>

type Missing = CreationCall & { readonly making: WalletSpecs.Making }

interface Sifted {
  readonly batch: Preparation.Batch<CreationCall>
  readonly missing: ReadonlyArray<Missing>
  readonly existing: ReadonlyArray<number>
  readonly failed: Map<number, ElementFailure>
}

const hasPasskeys = ({ making }: CreationCall): boolean =>
  making !== null && making.config.passkeys.length > 0

/** A wallet given only by its address must exist: the address does not reveal its configuration. */
const saltRequired = ({ index, wallet }: CreationCall): Failure =>
  invalid("salt_required", [
    { path: `accounts[${index}].salt`, message: "salt is required: the wallet is not deployed", wallet }
  ])

/** Selects the wallets to deploy. `Failure`: the whole request is bad. */
const sift = (
  { context: { submitter }, snapshot: { forgeable, wallets } }: Input,
  batch: Preparation.Batch<CreationCall>
): Result.Result<Sifted, Failure> =>
  Result.gen(function* () {
    const failed = new Map<number, ElementFailure>()
    const others: Array<RefusalDetail> = []
    const existing: Array<number> = []
    const missing: Array<Missing> = []
    for (const call of batch.calls) {
      const { index, making, wallet } = call
      const state = wallets.get(wallet)
      if (state?._tag === "foreign")
        failed.set(index, elementFailure("wallet_not_supported", undefined, { wallet }))
      else if (state?._tag === "deployed") {
        existing.push(index)
        if (!(yield* WalletSpecs.isAsWanted(call, submitter, state.configuration.config)))
          others.push({ path: `accounts[${index}]`, message: Reasons.text("otherConfiguration"), wallet })
      } else if (making === null) return yield* Result.fail(saltRequired(call))
      else if (forgeable && hasPasskeys(call))
        failed.set(index, elementFailure("passkeys_forgeable", undefined, { wallet }))
      else missing.push({ ...call, making })
    }
    if (others.length > 0) return yield* Result.fail(unprocessable("account_exists", others))
    return { batch, missing, existing, failed }
  })

const drafter = ({ context, snapshot }: Input, deadline: number) => {
  const { chainId, connection, entryPoint, formula, payer, submitter, version } = context
  const bundler = Submitter.boundTo(connection.profile, submitter)
  const conditions = { validUntil: deadline, validAfter: 0, bundler }
  const deploymentOf = ({ making }: Missing): Deployment.Deployment => ({ ...making, deadline })
  const dummy = Conditions.encodeSignature(conditions, Proof.dummyEcdsa(1))
  return (each: Missing): Effect.Effect<InitialSimulation.Draft, Failure> => {
    const digest = Deployment.digest({ chainId, factory: formula.factory }, deploymentOf(each), bundler)
    const authorization = Deployment.authorization(EstimationDeployer.sign(digest), bundler)
    const op: UserOperation.UserOperation = {
      sender: each.wallet,
      nonce: 0n,
      initCode: Deployment.initCode(formula.factory, deploymentOf(each), authorization),
      callData: Hex.empty,
      callGasLimit: 0n,
      verificationGasLimit: 0n,
      preVerificationGas: 0n,
      maxFeePerGas: snapshot.prices.maxFeePerGas,
      maxPriorityFeePerGas: snapshot.prices.maxPriorityFeePerGas,
      paymasterAndData: Hex.empty,
      signature: dummy
    }
    return Effect.map(payer.draft(op), (drafted) => {
      const hash = UserOperation.hash(version, entryPoint, chainId, drafted)
      const proof = EstimationDeployer.sign(Conditions.signingHash(hash, conditions))
      // The payer's addition follows the op's own signature.
      const added = Hex.unsafe(`0x${drafted.signature.slice(dummy.length)}`)
      const signature = Hex.concat(Conditions.encodeSignature(conditions, proof), added)
      return { index: each.index, value: 0n, op: { ...drafted, signature } }
    })
  }
}

export const prepare = (input: Input): Preparation.Each =>
  Effect.gen(function* () {
    const { context, snapshot } = input
    const { connection, formula, payer, settings, spaceOf, submitter } = context
    const deadline = yield* Snapshot.deployableUntil(snapshot.block)
    const now = yield* Clock.currentTimeMillis
    const draftOf = drafter(input, deadline)
    const sifted = input.batches.map((batch) => sift(input, batch))
    const drafted: Array<{ readonly place: number; readonly input: Estimation.Input }> = []
    for (const [place, one] of sifted.entries()) {
      if (Result.isFailure(one) || one.success.missing.length === 0) continue
      drafted.push({
        place,
        input: {
          context,
          entryPointCode: snapshot.entryPointCode,
          from: submitter,
          drafts: yield* EventLoop.each(one.success.missing, draftOf),
          declared: false,
          lowestPrefund: false,
          revert: one.success.batch.revert,
          extra: { [formula.factory]: { stateDiff: EstimationDeployer.factoryStorage } }
        }
      })
    }
    const estimates = yield* Estimation.estimateEach(drafted.map((each) => each.input))
    const byPlace = new Map(drafted.map(({ place }, position) => [place, estimates[position]]))
    for (const each of estimates)
      if (Result.isSuccess(each)) {
        yield* Snapshot.checkImplementation(connection, each.success.implementation, settings.validator)
        break
      }

    const finish = ({ batch, existing, failed, missing }: Sifted, estimate: Estimation.Estimate) => {
      const makings = new Map(missing.map(({ index, making }) => [index, making]))
      const ops = estimate.estimated.map(
        (each): PreparedOp => ({
          requestId: batch.requestId,
          index: each.index,
          kind: "creation",
          unsigned: each.op,
          space: spaceOf(each.op.sender),
          nonceKey: 0n,
          sequence: 0n,
          userOpHash: null,
          proof: "deployer",
          window: { validAfter: 0, validUntil: deadline },
          dependsOn: [],
          reserve: Preparation.cap(Payer.walletShare(payer, each)),
          l1Fee: each.l1Fee,
          returned: null,
          goodUntil: Preparation.goodUntil(now, snapshot.block.timestamp, deadline)
        })
      )
      return {
        ...Preparation.nothing,
        ops,
        existing,
        failed: new Map([...failed, ...estimate.failed]),
        funds: ops.length === 0 ? [] : Funding.forAcceptance(context, estimate),
        deployments: ops.flatMap(({ index }) => {
          const making = makings.get(index)
          if (making === undefined) return []
          const { configHash, create2Salt } = making
          return [
            {
              chainId: context.chainId,
              factory: formula.factory,
              create2Salt,
              configHash,
              deadline,
              chainTime: snapshot.block.timestamp
            }
          ]
        })
      }
    }
    return sifted.map((one, place) => {
      const estimate = byPlace.get(place)
      return Result.flatMap(one, (own): Result.Result<Preparation.Prepared, Failure> => {
        const { existing, failed } = own
        if (estimate === undefined) return Result.succeed({ ...Preparation.nothing, existing, failed })
        return Result.map(estimate, (made) => finish(own, made))
      })
    })
  })
