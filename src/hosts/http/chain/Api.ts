import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as GetReceipts from "../../../application/chain/GetReceipts.js"
import { Authentication, Example, RequiredScope } from "../Contract.js"
import * as Sample from "../docs/Sample.js"

/** What the chain says. */
export const group = HttpApiGroup.make("chain")
  .add(
    HttpApiEndpoint.post("receipt", "/receipt")
      .setPayload(GetReceipts.Request)
      .addSuccess(GetReceipts.Response)
      .annotate(RequiredScope, "read")
      .annotate(OpenApi.Summary, "Fetch receipts")
      .annotate(
        OpenApi.Description,
        "Receipts of mined transactions with decoded logs, in request order; hashes that are not mined are listed in pending or unknown."
      )
      .annotate(Example, { txHashes: [Sample.hash], rpc: Sample.rpc })
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Read the chain.")
