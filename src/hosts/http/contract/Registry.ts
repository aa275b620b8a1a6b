import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as OpenApi from "@effect/platform/OpenApi"
import * as AddError from "../../../application/usecases/registry/AddError.js"
import * as AddEvent from "../../../application/usecases/registry/AddEvent.js"
import { Authentication, Example, RequiredScope } from "./EndpointAnnotations.js"

/** What an account teaches the service of its contracts. */
export const group = HttpApiGroup.make("registry")
  .add(
    HttpApiEndpoint.post("addEvent", "/addEvent")
      .setPayload(AddEvent.Request)
      .addSuccess(AddEvent.Response)
      .annotate(RequiredScope, "write")
      .annotate(OpenApi.Summary, "Register an event")
      .annotate(
        OpenApi.Description,
        "Logs in answers to this account are decoded with it from now on, and it can be filtered. Registering it again changes nothing."
      )
      .annotate(Example, {
        eventABI: {
          type: "event",
          name: "Paid",
          inputs: [
            { name: "payer", type: "address", indexed: true, internalType: "address" },
            { name: "amount", type: "uint256", indexed: false, internalType: "uint256" }
          ],
          anonymous: false
        }
      })
  )
  .add(
    HttpApiEndpoint.post("addError", "/addError")
      .setPayload(AddError.Request)
      .addSuccess(AddError.Response)
      .annotate(RequiredScope, "write")
      .annotate(OpenApi.Summary, "Register an error")
      .annotate(
        OpenApi.Description,
        "Reverts in answers to this account are decoded with it from now on. Registering it again changes nothing."
      )
      .annotate(Example, {
        errorABI: {
          type: "error",
          name: "NotPaid",
          inputs: [{ name: "missing", type: "uint256", internalType: "uint256" }]
        }
      })
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Register events and errors of your contracts.")
