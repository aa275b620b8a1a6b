import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as GetReceipts from "../../../application/endpoints/chain/GetReceipts.js"
import * as ReadContracts from "../../../application/endpoints/chain/ReadContracts.js"
import { Authentication, post } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

/** Reads of contracts and receipts. */
export const group = HttpApiGroup.make("chain")
  .add(
    post("read", "read", ReadContracts, {
      summary: "Read contracts",
      description:
        "Calls view functions, all at one block. An error of one read appears in that element's errors, and the other reads are answered. Without from the caller is the zero address. When no read names from, all reads share one call of Multicall3's code, if the chain has it and the node supports state overrides: a function that changes state then affects the reads after it. When a read names from, each read is a separate call.",
      example: {
        reads: [
          {
            to: Sample.token,
            funcSignature: "balanceOf(address)",
            funcParams: [Sample.recipient],
            returnSignature: "uint256"
          }
        ],
        rpc: Sample.rpc
      }
    }),
    post("receipt", "read", GetReceipts, {
      summary: "Fetch receipts",
      description:
        "Receipts of mined transactions with decoded logs, in request order; hashes that are not mined are listed in pending or unknown. A hash that the service has replaced resolves to the receipt of the mined replacement, with requestedHash. A failed transaction has its reason, if the node returns it.",
      example: { txHashes: [Sample.hash], rpc: Sample.rpc }
    })
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Read the chain.")

export const useCases = {
  read: ReadContracts.run,
  receipt: GetReceipts.run
}
