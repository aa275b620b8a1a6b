import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as CheckWallets from "../../../application/endpoints/wallets/CheckWallets.js"
import * as CreateWallets from "../../../application/endpoints/wallets/CreateWallets.js"
import * as PredictWallets from "../../../application/endpoints/wallets/PredictWallets.js"
import { Authentication, post, write } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

/** Prediction, deployment and lookup of wallets. */
export const group = HttpApiGroup.make("wallets")
  .add(
    post("predict", "read", PredictWallets, {
      summary: "Predict wallet addresses",
      description:
        "Derives the address that each salt and custody has at the factory. Pure: it calls no node, and the same request always has the same answer.",
      example: {
        accounts: [{ salt: "customer-1", walletCustody: 1 }],
        settings: {
          factory: Sample.factory,
          beaconAdminAddress: Sample.beacon,
          beaconAdminCreationCode: Sample.creationCode
        }
      }
    }),
    post("check", "read", CheckWallets, {
      summary: "Check whether wallets exist",
      description:
        "Reports for each account whether its address has a wallet of the beacon. An error of one account appears in that element's error.",
      example: {
        accounts: [{ salt: "customer-1", walletCustody: 1 }],
        settings: { rpc: Sample.rpc }
      }
    }),
    write("create", CreateWallets, {
      summary: "Deploy wallets",
      description:
        "Deploys the wallets together, each from its own balance: fund the predicted addresses first. returnData has one element per account, in request order.",
      example: {
        accounts: [{ salt: "customer-1", walletCustody: 1 }],
        settings: { rpc: Sample.rpc, entryPoint: Sample.entryPoint, signer: Sample.signer }
      }
    })
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Predict, check and deploy wallets.")

export const useCases = {
  predict: PredictWallets.run,
  check: CheckWallets.run,
  create: CreateWallets.run
}
