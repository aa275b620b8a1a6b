import * as CancelRequest from "../../../application/usecases/operations/CancelRequest.js"
import * as EstimateGas from "../../../application/usecases/operations/EstimateGas.js"
import * as ExecuteEncoded from "../../../application/usecases/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../application/usecases/operations/ExecuteOperations.js"
import * as ExecutePasskey from "../../../application/usecases/operations/ExecutePasskey.js"
import * as GetRequest from "../../../application/usecases/operations/GetRequest.js"
import * as ListRequests from "../../../application/usecases/operations/ListRequests.js"
import * as PasskeyHash from "../../../application/usecases/operations/PasskeyHash.js"
import * as StreamEvents from "../../../application/usecases/operations/StreamEvents.js"
import * as TransactSigner from "../../../application/usecases/operations/TransactSigner.js"
import * as Unstuck from "../../../application/usecases/operations/Unstuck.js"
import type { group } from "../contract/Operations.js"
import type { HandlersOf } from "./Handlers.js"

export const handlers = {
  execute: (caller, request) => ExecuteOperations.run(caller, request),
  estimateGas: (caller, request) => EstimateGas.run(caller, request),
  executeEncoded: (caller, request) => ExecuteEncoded.run(caller, request),
  passkeyHash: (caller, request) => PasskeyHash.run(caller, request),
  executePasskey: (caller, request) => ExecutePasskey.run(caller, request),
  transactSigner: (caller, request) => TransactSigner.run(caller, request),
  unstuck: (caller, request) => Unstuck.run(caller, request),
  getRequest: (caller, request) => GetRequest.run(caller, request),
  streamEvents: (caller, request) => StreamEvents.run(caller, request),
  listRequests: (caller, request) => ListRequests.run(caller, request),
  cancelRequest: (caller, request) => CancelRequest.run(caller, request)
} satisfies HandlersOf<typeof group, unknown>
