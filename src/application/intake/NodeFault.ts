import type { Connection } from "../chain/Connection.js"
import type { ChainRpcError } from "../ports/chain/ChainRpc.js"
import { type ElementFailure, elementFailure } from "../request/Elements.js"
import type { Failure } from "../request/Failure.js"
import * as Reasons from "../request/Reasons.js"

/** A node did not do what it was asked, and may do it the next time. */
export interface NodeFault {
  readonly failure: ElementFailure
  /** It could not be asked at all. One that answers with errors is asked a few times only. */
  readonly unreachable: boolean
}

/** A failure of the whole request, as that of an element once others have been accepted. */
export const asElement = (failure: Failure): ElementFailure => {
  const [detail] = failure.details
  return elementFailure(
    failure._tag === "Unprocessable" ? failure.code : "execution_failed",
    detail === undefined
      ? Reasons.known(failure.message)
      : Reasons.text("refusedBeforeSending", { text: failure.message, problem: detail.message })
  )
}

/** The node's part in a failure; null: it has done what it was asked. */
export const ofFailure = (failure: Failure): NodeFault | null =>
  failure.code === "invalid_rpc" || failure.code === "node_refused"
    ? { failure: asElement(failure), unreachable: failure.code === "invalid_rpc" }
    : null

/** A failing node in what is said of it. A caller is not told where the operator's node is. */
export const refused = (
  { chain: { origin }, trust }: Pick<Connection, "chain" | "trust">,
  message: string
): ElementFailure =>
  elementFailure(
    "node_refused",
    Reasons.text("nodeRefused", {
      message: trust === "operator" ? message.replaceAll(origin, "the operator's node") : message
    })
  )

export const ofNode = (
  connection: Pick<Connection, "chain" | "trust">,
  { message, reason }: Pick<ChainRpcError, "message" | "reason">
): NodeFault => ({
  failure: refused(connection, message),
  unreachable: reason !== "rejected" && reason !== "unsupported"
})
