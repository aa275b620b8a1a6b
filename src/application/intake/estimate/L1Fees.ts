import * as BigInts from "effect/BigInt"
import * as Effect from "effect/Effect"
import * as Gas from "../../../domain/erc4337/gas/Gas.js"
import * as L1Fee from "../../../domain/erc4337/gas/L1Fee.js"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type { Hex } from "../../../domain/primitives/Hex.js"
import { type Connection, refusal } from "../../chain/Connection.js"
import { type Failure, unprocessable } from "../../request/Failure.js"
import * as Reasons from "../../request/Reasons.js"
import * as Together from "../../runtime/Together.js"
import type { OpContext } from "../Preparation.js"

/** What layer 1 asks for an op's data, a fifth of margin included. */
export interface OpFee {
  readonly wei: bigint
  /** The same in gas at the price that the op will pay: belongs into its preVerificationGas. */
  readonly gas: bigint
}

const nothing: OpFee = { wei: 0n, gas: 0n }

/** More gas than any op can have; a node that wants it makes no sense. */
const mostGas = 2n ** 48n

const refused = (path: string, message: Reasons.Text) =>
  Effect.fail(unprocessable("node_refused", [{ path, message }]))

/** The oracle's fees of these transactions, wei, without a margin. */
const ask = (
  { chain, profile, trust }: Connection,
  transactions: ReadonlyArray<Hex>
): Effect.Effect<ReadonlyArray<bigint>, Failure> =>
  Together.forEach(transactions, (transaction) =>
    Effect.flatMap(
      Effect.mapError(chain.call({ to: L1Fee.oracle, data: L1Fee.question(transaction) }), refusal(trust)),
      ({ data, success }) => {
        const fee = success ? L1Fee.answer(data) : null
        if (fee === null)
          return refused(
            trust === "caller" ? "settings.rpc" : "",
            Reasons.text("noL1Oracle", { oracle: L1Fee.oracle })
          )
        // No transaction may cost more than this, whatever a node says.
        const cap = profile.caps.maxFeePerGas * profile.caps.transactionGas
        return L1Fee.bound(fee) > cap
          ? Effect.fail(
              unprocessable("fees_above_cap", [{ path: "", message: Reasons.text("l1Fee", { fee, cap }) }])
            )
          : Effect.succeed(fee)
      }
    )
  )

/** What layer 1 may ask for a transaction's data, wei, a fifth of margin included; 0 on chains without such a fee. */
export const ofTransaction = (
  connection: Connection,
  payload: L1Fee.Payload
): Effect.Effect<bigint, Failure> =>
  connection.profile.l1Fee === null
    ? Effect.succeed(0n)
    : Effect.map(ask(connection, [L1Fee.likeness(payload)]), ([fee = 0n]) => L1Fee.bound(fee))

/** Of each op, as if it were alone in its transaction; whatever is asked at the same moment leaves with it. */
export const ofOps = (
  { chainId, connection, entryPoint, version }: OpContext,
  beneficiary: Address,
  ops: ReadonlyArray<UserOperation>
): Effect.Effect<ReadonlyArray<OpFee>, Failure> =>
  connection.profile.l1Fee === null || ops.length === 0
    ? Effect.succeed(ops.map(() => nothing))
    : Effect.flatMap(
        Together.all([
          ask(
            connection,
            ops.map((op) => L1Fee.ofOp(version, entryPoint, chainId, beneficiary, op))
          ),
          Effect.mapError(connection.chain.block("latest"), refusal(connection.trust))
        ]),
        ([fees, block]) =>
          Effect.forEach(ops, ({ maxFeePerGas, maxPriorityFeePerGas }, position) => {
            const fee = fees[position] ?? 0n
            const paid =
              block === null || block.baseFeePerGas === null
                ? maxFeePerGas
                : BigInts.min(maxFeePerGas, block.baseFeePerGas + maxPriorityFeePerGas)
            const gas = Gas.l1DataGas(fee, paid)
            return gas < mostGas
              ? Effect.succeed({ wei: L1Fee.bound(fee), gas })
              : refused("", Reasons.text("senselessL1Fee", { fee, price: paid }))
          })
      )
