import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as CancelRequest from "../../../application/endpoints/operations/CancelRequest.js"
import * as EstimateGas from "../../../application/endpoints/operations/EstimateGas.js"
import * as EventStream from "../../../application/endpoints/operations/EventStream.js"
import * as ExecuteEncoded from "../../../application/endpoints/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../application/endpoints/operations/ExecuteOperations.js"
import * as ExecutePasskey from "../../../application/endpoints/operations/ExecutePasskey.js"
import * as GetRequest from "../../../application/endpoints/operations/GetRequest.js"
import * as ListRequests from "../../../application/endpoints/operations/ListRequests.js"
import * as PasskeyHash from "../../../application/endpoints/operations/PasskeyHash.js"
import * as StreamEvents from "../../../application/endpoints/operations/StreamEvents.js"
import * as TransactSigner from "../../../application/endpoints/operations/TransactSigner.js"
import * as Unstuck from "../../../application/endpoints/operations/Unstuck.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import {
  Authentication,
  describe,
  LongList,
  post,
  RequiredScope,
  Streamed,
  write
} from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

const operation = {
  salt: "customer-1",
  walletCustody: 1,
  to: Sample.token,
  funcSignature: "transfer(address,uint256)",
  funcParams: [Sample.recipient, "1000"]
}
const settings = { rpc: Sample.rpc, entryPoint: Sample.entryPoint, signer: Sample.signer }

/** Calls that wallets make, each as one ERC-4337 user operation. */
export const group = HttpApiGroup.make("operations")
  .add(
    write("execute", ExecuteOperations, {
      summary: "Execute operations",
      description:
        "Encodes, estimates, signs and submits one op per operation, together in one transaction when they fit. An operation that would revert is not sent; the others are, and status is 4. With Prefer: respond-async it takes up to 10,000 operations, in a body of up to 8 MiB; logs of the answer to more than 256 are empty.",
      example: { operations: [operation], settings }
    }).annotate(LongList, "operations"),
    post("estimateGas", "read", EstimateGas, {
      summary: "Estimate gas and encode ops",
      description:
        "Simulates the operations in order and returns the encoded ops, ready for /executeEncoded. A well-formed request is always answered with 200; status 0 and error say that an operation fails.",
      example: { operations: [operation], settings }
    }),
    write("executeEncoded", ExecuteEncoded, {
      summary: "Execute encoded ops",
      description:
        "Submits ops of /estimateGas, unchanged. Each comes with the proof of the wallet's owners or passkeys, or, without a signature, is signed by settings.signer and settings.cosigners. settings.signer submits and pays; without one the service's own EOA does, for ops that pay for it.",
      example: {
        operations: [{ encodedUserOp: Sample.encodedUserOp, userOpHash: Sample.hash, walletCustody: 1 }],
        settings
      }
    }),
    post("passkeyHash", "read", PasskeyHash, {
      summary: "Encode ops for passkeys",
      description:
        "As /estimateGas, for wallets with passkeys and the service's own EOA as the submitter: signingHash is the challenge for navigator.credentials.get(). A well-formed request is always answered with 200; status 1 and an element's error say that an operation fails.",
      example: {
        operations: [{ ...operation, walletCustody: 5 }],
        settings: { rpc: Sample.rpc, entryPoint: Sample.entryPoint }
      }
    }),
    write("executePasskey", ExecutePasskey, {
      summary: "Execute ops that a passkey has signed",
      description:
        "Submits ops of /passkeyHash, unchanged, with what the browser's authenticator made of their challenges. Everything is verified before anything is spent. The service's own EOA submits, for ops that pay for it.",
      example: {
        operations: [
          {
            encodedUserOp: Sample.encodedUserOp,
            userOpHash: Sample.hash,
            validationData: {
              signature: Sample.assertion.signature,
              authenticatorData: Sample.assertion.authenticatorData,
              clientDataJSON: Sample.assertion.clientDataJSON
            }
          }
        ],
        settings: { rpc: Sample.rpc, entryPoint: Sample.entryPoint }
      }
    }),
    write("transactSigner", TransactSigner, {
      summary: "Send a transaction of the signer itself",
      description:
        "Calls a function, or transfers value, from the signer's own address. A transaction that would revert is not sent.",
      example: {
        to: Sample.token,
        funcSignature: "transfer(address,uint256)",
        funcParams: [Sample.recipient, "1000"],
        settings: { rpc: Sample.rpc, signer: Sample.signer }
      }
    }),
    write("unstuck", Unstuck, {
      summary: "Replace waiting transactions",
      description:
        "Replaces the signer's pending transactions at higher prices, each with its nonce and payload. The service does so by itself after a while; this endpoint does it now.",
      example: { settings: { rpc: Sample.rpc, signer: Sample.signer }, dryRun: true }
    }),
    HttpApiEndpoint.get("listRequests", "/requests", {
      disableCodecs: true,
      query: ListRequests.Query.fields,
      success: ListRequests.Response
    })
      .annotate(RequiredScope, "read")
      .annotateMerge(
        describe(
          "List writes",
          "The account's accepted writes of the last 30 days and all unfinished ones, newest first, in pages. GET /requests/{requestId} has the answer of each.",
          {
            state: "pending",
            since: "1767225600",
            until: "1767312000",
            wallet: Sample.recipient,
            metadata: "order:4711",
            cursor: "MTc2NzIyNTYwMDAwMC40Mg",
            limit: "20"
          }
        )
      ),
    HttpApiEndpoint.get("getRequest", "/requests/:requestId", {
      disableCodecs: true,
      params: GetRequest.Request.fields,
      query: GetRequest.Query.fields,
      success: GetRequest.Response,
      error: ErrorEnvelope.schemas[404]
    })
      .annotate(RequiredScope, "read")
      .annotateMerge(
        describe(
          "Get a write",
          "The state of an accepted write and, once it is final, its answer. Refused writes, writes without anything to send, and writes of other accounts are not found. With wait the answer comes when the request is final, or when that time has passed.",
          { requestId: Sample.requestId, wait: "30" }
        )
      ),
    HttpApiEndpoint.delete("cancelRequest", "/requests/:requestId", {
      disableCodecs: true,
      params: CancelRequest.Request.fields,
      success: CancelRequest.Response,
      error: ErrorEnvelope.schemas[404]
    })
      .annotate(RequiredScope, "write")
      .annotateMerge(
        describe(
          "Cancel the unsigned elements of a write",
          "Ends the unsigned elements of an accepted write. No process signs them later, and the write's answer reports request_cancelled. Signed elements continue. Repeats change nothing. /unstuck cannot be cancelled. A write of another account is not found.",
          { requestId: Sample.requestId }
        )
      ),
    HttpApiEndpoint.get("streamEvents", "/requests/:requestId/events", {
      disableCodecs: true,
      params: GetRequest.Request.fields,
      query: StreamEvents.Query.fields,
      success: EventStream.schema.pipe(HttpApiSchema.asText({ contentType: "text/event-stream" })),
      error: ErrorEnvelope.schemas[404]
    })
      .annotate(RequiredScope, "read")
      .annotate(Streamed, true)
      .annotateMerge(
        describe(
          "Follow a write",
          "Server-Sent Events of an accepted write, from its acceptance to its final answer: accepted, scheduled, signed, submitted, replaced, included, reopened, settled, final, cancelled, expired. id is the event's number, from 1 without a gap; Last-Event-ID continues after an event. The stream ends with the final answer; resuming it later is answered 204, unless there are new events.",
          { requestId: Sample.requestId, after: "2" }
        )
      )
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Execute calls from wallets, or prepare them for your own signature.")

export const useCases = {
  execute: ExecuteOperations.run,
  estimateGas: EstimateGas.run,
  executeEncoded: ExecuteEncoded.run,
  passkeyHash: PasskeyHash.run,
  executePasskey: ExecutePasskey.run,
  transactSigner: TransactSigner.run,
  unstuck: Unstuck.run,
  getRequest: GetRequest.run,
  streamEvents: StreamEvents.run,
  listRequests: ListRequests.run,
  cancelRequest: CancelRequest.run
}
