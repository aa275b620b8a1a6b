import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as GetBundlerAddress from "../../../application/signing/GetBundlerAddress.js"
import * as GetSigner from "../../../application/signing/GetSigner.js"
import { Authentication, BodyOptional, Example, RequiredScope } from "../Contract.js"
import * as Sample from "../docs/Sample.js"

const bundlerAddress = "The service's own submitting address, to which ops without a signer are bound."

/** The keys behind the service. */
export const group = HttpApiGroup.make("signing")
  .add(
    HttpApiEndpoint.post("getSigner", "/getSigner")
      .setPayload(GetSigner.Request)
      .addSuccess(GetSigner.Response)
      .annotate(RequiredScope, "read")
      .annotate(OpenApi.Summary, "Get a signer's address")
      .annotate(OpenApi.Description, "Address, public key and kind of one of the account's signers.")
      .annotate(Example, { signer: Sample.signer })
  )
  .add(
    HttpApiEndpoint.post("getBundlerAddress", "/getbundleraddress")
      .setPayload(GetBundlerAddress.Request)
      .addSuccess(GetBundlerAddress.Response)
      .annotate(RequiredScope, "read")
      .annotate(BodyOptional, true)
      .annotate(OpenApi.Summary, "Get the bundler's address")
      .annotate(OpenApi.Description, bundlerAddress)
      .annotate(Example, {})
  )
  .add(
    HttpApiEndpoint.get("getBundlerAddressByGet", "/getbundleraddress")
      .addSuccess(GetBundlerAddress.Response)
      .annotate(RequiredScope, "read")
      .annotate(OpenApi.Summary, "Get the bundler's address")
      .annotate(OpenApi.Description, bundlerAddress)
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Addresses of signers and of the bundler.")
