import * as Movements from "../../domain/policy/Movements.js"
import type { Address } from "../../domain/primitives/Address.js"
import type * as Call from "../prepare/Call.js"
import type { OfRequest } from "../prepare/OpContext.js"
import * as Previews from "../prepare/ops/Previews.js"

/** The deployment of a wallet. */
export const deployment = (wallet: Address): Movements.Movement => ({
  ...Movements.plain("deploy"),
  contract: wallet,
  to: wallet
})

const read = (
  call: Call.Call,
  { connection, submitter }: Pick<OfRequest, "connection" | "submitter">
): Movements.Reading => {
  const { ledger } = connection.profile
  if (call.kind === "creation") return { movements: [deployment(call.wallet)], calls: 0 }
  if (call.kind === "direct")
    return Movements.of({ wallet: submitter, ledger }, [
      { target: call.to, value: call.value, data: call.data }
    ])
  const data = Previews.callDataOf(call)
  // The wallet executes its calldata as a call to itself.
  return Movements.of(
    { wallet: call.wallet, ledger },
    data === null ? [] : [{ target: call.wallet, value: 0n, data }]
  )
}

/** Hooks, rules, holds and signatures read the same calls, each of one request: 40 microseconds for a transfer. */
const known = new WeakMap<Call.Call, Movements.Reading>()

/** Reads what an element moves, as rules, limits and decision hooks judge it. */
export const of = (
  call: Call.Call,
  context: Pick<OfRequest, "connection" | "submitter">
): Movements.Reading => {
  const before = known.get(call)
  if (before !== undefined) return before
  const reading = read(call, context)
  known.set(call, reading)
  return reading
}
