import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as AddError from "../../../application/endpoints/registry/AddError.js"
import * as AddEvent from "../../../application/endpoints/registry/AddEvent.js"
import { Authentication, post } from "./EndpointAnnotations.js"

/** Registration of an account's contract events and errors. */
export const group = HttpApiGroup.make("registry")
  .add(
    post("addEvent", "write", AddEvent, {
      summary: "Register an event",
      description:
        "Logs in answers to this account are decoded with it from now on, and it can be filtered. Registering it again changes nothing.",
      example: {
        eventABI: {
          type: "event",
          name: "Paid",
          inputs: [
            { name: "payer", type: "address", indexed: true, internalType: "address" },
            { name: "amount", type: "uint256", indexed: false, internalType: "uint256" }
          ],
          anonymous: false
        }
      }
    }),
    post("addError", "write", AddError, {
      summary: "Register an error",
      description:
        "Reverts in answers to this account are decoded with it from now on. Registering it again changes nothing.",
      example: {
        errorABI: {
          type: "error",
          name: "NotPaid",
          inputs: [{ name: "missing", type: "uint256", internalType: "uint256" }]
        }
      }
    })
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Register events and errors of your contracts.")

export const useCases = {
  addEvent: AddEvent.run,
  addError: AddError.run
}
