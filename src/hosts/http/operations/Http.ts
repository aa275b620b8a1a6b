import * as EstimateGas from "../../../application/operation/EstimateGas.js"
import * as ExecuteEncoded from "../../../application/operation/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../application/operation/ExecuteOperations.js"
import * as ExecutePasskey from "../../../application/operation/ExecutePasskey.js"
import * as GetRequest from "../../../application/operation/GetRequest.js"
import * as PasskeyHash from "../../../application/operation/PasskeyHash.js"
import * as TransactSigner from "../../../application/operation/TransactSigner.js"
import * as Unstuck from "../../../application/operation/Unstuck.js"
import type { HandlersOf } from "../Handlers.js"
import type { group } from "./Api.js"

export const handlers = {
  execute: (caller, request) => ExecuteOperations.run(caller, request),
  estimateGas: (caller, request) => EstimateGas.run(caller, request),
  executeEncoded: (caller, request) => ExecuteEncoded.run(caller, request),
  passkeyHash: (caller, request) => PasskeyHash.run(caller, request),
  executePasskey: (caller, request) => ExecutePasskey.run(caller, request),
  transactSigner: (caller, request) => TransactSigner.run(caller, request),
  unstuck: (caller, request) => Unstuck.run(caller, request),
  getRequest: (caller, request) => GetRequest.run(caller, request)
} satisfies HandlersOf<typeof group, unknown>
