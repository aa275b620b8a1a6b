import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as GetReceipts from "../../../application/usecases/chain/GetReceipts.js"
import * as ReadContracts from "../../../application/usecases/chain/ReadContracts.js"
import { Authentication, post } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

/** What the chain says. */
export const group = HttpApiGroup.make("chain")
  .add(
    post("read", "read", ReadContracts, {
      summary: "Read contracts",
      description:
        "Calls view functions, all at one block. What is wrong with one read is that element's errors, the others are answered. Without from a read comes from the zero address. When no read names from, they share one call of the code of Multicall3, where the chain has it and the node takes state overrides: a function that changes state is then felt by the reads behind it. When any read names from, each is a call of its own.",
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
        "Receipts of mined transactions with decoded logs, in request order; hashes that are not mined are listed in pending or unknown. A hash that the service has replaced leads to the receipt of what is mined in its place, with requestedHash. A failed transaction carries the reason, where the node can tell it.",
      example: { txHashes: [Sample.hash], rpc: Sample.rpc }
    })
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Read the chain.")

/** By the endpoint's name. */
export const useCases = {
  read: ReadContracts.run,
  receipt: GetReceipts.run
}
