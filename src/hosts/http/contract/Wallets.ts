import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as CheckWallets from "../../../application/usecases/wallets/CheckWallets.js"
import * as CreateWallets from "../../../application/usecases/wallets/CreateWallets.js"
import * as PredictWallets from "../../../application/usecases/wallets/PredictWallets.js"
import { Authentication, Example, Idempotent, RequiredScope } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

/** Prediction, deployment and look-up of wallets. */
export const group = HttpApiGroup.make("wallets")
  .add(
    HttpApiEndpoint.post("predict", "/predict")
      .setPayload(PredictWallets.Request)
      .addSuccess(PredictWallets.Response)
      .annotate(RequiredScope, "read")
      .annotate(OpenApi.Summary, "Predict wallet addresses")
      .annotate(
        OpenApi.Description,
        "Derives the address that each salt and custody has at the factory. Pure: no node is asked, and the same request always has the same answer."
      )
      .annotate(Example, {
        accounts: [{ salt: "customer-1", walletCustody: 1 }],
        settings: {
          factory: Sample.factory,
          beaconAdminAddress: Sample.beacon,
          beaconAdminCreationCode: Sample.creationCode
        }
      })
  )
  .add(
    HttpApiEndpoint.post("check", "/check")
      .setPayload(CheckWallets.Request)
      .addSuccess(CheckWallets.Response)
      .annotate(RequiredScope, "read")
      .annotate(OpenApi.Summary, "Check whether wallets exist")
      .annotate(
        OpenApi.Description,
        "Says for each account whether a wallet of the beacon stands at its address. What is wrong with one account is that element's error."
      )
      .annotate(Example, {
        accounts: [{ salt: "customer-1", walletCustody: 1 }],
        settings: { rpc: Sample.rpc }
      })
  )
  .add(
    HttpApiEndpoint.post("create", "/create")
      .setPayload(CreateWallets.Request)
      .addSuccess(CreateWallets.Response)
      .annotate(RequiredScope, "write")
      .annotate(Idempotent, true)
      .annotate(OpenApi.Summary, "Deploy wallets")
      .annotate(
        OpenApi.Description,
        "Deploys the wallets together, each from its own balance: fund the predicted addresses first. returnData has one element per account, in request order."
      )
      .annotate(Example, {
        accounts: [{ salt: "customer-1", walletCustody: 1 }],
        settings: { rpc: Sample.rpc, entryPoint: Sample.entryPoint, signer: Sample.signer }
      })
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Predict, check and deploy wallets.")
