import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Gas from "../../../domain/erc4337/gas/Gas.js"
import * as L1Fee from "../../../domain/erc4337/gas/L1Fee.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Hex } from "../../../domain/primitives/Hex.js"
import { type Connection, refusal } from "../../chain/Connection.js"
import { type Failure, unprocessable } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import type { OpContext } from "../OpContext.js"

/** An op's fees to layer 1 for its data and to the chain's operator for its gas, including a margin of a fifth. */
export interface OpFee {
  readonly wei: bigint
  /** The fee as gas at the op's expected price, for its preVerificationGas. */
  readonly gas: bigint
}

/** An op's fee, by the gas that its limits allow. */
export type FeeOf = (gas: bigint) => OpFee

const nothing: FeeOf = () => ({ wei: 0n, gas: 0n })

/** More gas than any op can have; a node that requires it is wrong. */
const mostGas = 2n ** 48n

const fail = (path: string, message: Reasons.Text) =>
  Effect.fail(unprocessable("node_refused", [{ path, message }]))

/** Queries the oracle for these transactions' fees, wei, without a margin. */
const ask = (
  connection: Connection,
  transactions: ReadonlyArray<Hex>
): Effect.Effect<ReadonlyArray<bigint>, Failure> => {
  const { chain, trust } = connection
  return Effect.forEach(
    transactions,
    (transaction) =>
      Effect.flatMap(
        Effect.mapError(chain.call({ to: L1Fee.oracle, data: L1Fee.question(transaction) }), refusal(trust)),
        ({ data, success }) => {
          const fee = success ? L1Fee.answer(data) : null
          if (fee === null)
            return fail(
              trust === "caller" ? "settings.rpc" : "",
              Reasons.text("noL1Oracle", { oracle: L1Fee.oracle })
            )
          return cap(connection, fee)
        }
      ),
    { concurrency: "unbounded" }
  )
}

/** Operator fee for this gas, wei; 0 if the oracle has no such fee. */
const askOperator = ({ chain, trust }: Connection, gas: bigint): Effect.Effect<bigint, Failure> =>
  Effect.map(
    Effect.mapError(chain.call({ to: L1Fee.oracle, data: L1Fee.operatorQuestion(gas) }), refusal(trust)),
    ({ data, success }) => (success ? (L1Fee.answer(data) ?? 0n) : 0n)
  )

/** Bounds the fee by the service operator's caps, whatever a node says. */
const cap = ({ profile: { caps } }: Connection, fee: bigint): Effect.Effect<bigint, Failure> => {
  const cap = caps.maxFeePerGas * caps.transactionGas
  return L1Fee.bound(fee) > cap
    ? Effect.fail(
        unprocessable("fees_above_cap", [{ path: "", message: Reasons.text("l1Fee", { fee, cap }) }])
      )
    : Effect.succeed(fee)
}

/**
 * A transaction's possible fees to layer 1 for its data and to the chain's operator for its gas, wei, including a
 * margin of a fifth; 0 on chains without such a fee.
 */
export const ofTransaction = (
  connection: Connection,
  payload: L1Fee.Payload & { readonly gasLimit: bigint }
): Effect.Effect<bigint, Failure> =>
  connection.profile.l1Fee === null
    ? Effect.succeed(0n)
    : Effect.flatMap(
        Effect.all([ask(connection, [L1Fee.likeness(payload)]), askOperator(connection, payload.gasLimit)], {
          concurrency: "unbounded"
        }),
        ([[fee = 0n], operator]) => Effect.map(cap(connection, fee + operator), L1Fee.bound)
      )

/** Fees of each op as if it had a separate transaction. Calls made at the same moment share a batch. */
export const ofOps = (
  { chainId, connection, entryPoint, version }: OpContext,
  beneficiary: Address,
  ops: ReadonlyArray<UserOperation>
): Effect.Effect<ReadonlyArray<FeeOf>, Failure> =>
  connection.profile.l1Fee === null || ops.length === 0
    ? Effect.succeed(ops.map(() => nothing))
    : Effect.flatMap(
        Effect.all(
          [
            ask(
              connection,
              ops.map((op) => L1Fee.ofOp(version, entryPoint, chainId, beneficiary, op))
            ),
            askOperator(connection, 0n),
            askOperator(connection, L1Fee.operatorUnits),
            Effect.mapError(connection.chain.block("latest"), refusal(connection.trust))
          ],
          { concurrency: "unbounded" }
        ),
        ([fees, ofNone, ofUnits, block]) => {
          const operator = L1Fee.operatorFee(ofNone, ofUnits)
          const most = L1Fee.operatorWei(operator, connection.profile.caps.transactionGas)
          return Effect.forEach(ops, ({ maxFeePerGas, maxPriorityFeePerGas }, position) => {
            const fee = fees[position] ?? 0n
            const paid =
              block === null || block.baseFeePerGas === null
                ? maxFeePerGas
                : BigInts.min(maxFeePerGas, block.baseFeePerGas + maxPriorityFeePerGas)
            const of: FeeOf = (gas) => {
              const wei = fee + L1Fee.operatorWei(operator, gas)
              return { wei: L1Fee.bound(wei), gas: Gas.l1DataGas(wei, paid) }
            }
            return Effect.flatMap(cap(connection, fee + most), () =>
              Gas.l1DataGas(fee + most, paid) < mostGas
                ? Effect.succeed(of)
                : fail("", Reasons.text("senselessL1Fee", { fee: fee + most, price: paid }))
            )
          })
        }
      )
