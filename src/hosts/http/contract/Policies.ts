import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Evaluate from "../../../application/endpoints/policies/Evaluate.js"
import * as Policies from "../../../application/endpoints/policies/Policies.js"
import { maxAddresses } from "../../../domain/policy/Policy.js"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { Authentication, BodyBounds, describe, RequiredScope, Versioned } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

const one = { subject: `key:${Sample.keyId}` }
const ofOne = {
  disableCodecs: true,
  params: Policies.Path.fields,
  error: ErrorEnvelope.schemas[404]
} as const

const policy = {
  mode: "enforce",
  expiresAt: 0,
  rules: [
    {
      name: "suppliers",
      effect: "allow",
      match: {
        kinds: ["erc20.transfer"],
        tokens: [Sample.token],
        to: ["list:suppliers"],
        maxAmount: "5000000000"
      }
    }
  ],
  limits: [{ name: "usdc", chain: "8453", asset: Sample.token, per: "day", max: "20000000000" }]
}

const bounds = {
  maxBytes: Policies.maxBytes,
  longest: { name: "addresses", maxElements: maxAddresses }
}

/** Spending rules of an account's keys, signers and wallets. */
export const group = HttpApiGroup.make("policies")
  .add(
    HttpApiEndpoint.get("listPolicies", "/policies", {
      disableCodecs: true,
      success: Policies.List
    }).annotateMerge(
      describe("List policies", "The account's policies and lists in force. The operator's are not shown.")
    ),
    HttpApiEndpoint.put("setPolicy", "/policies/:subject", {
      ...ofOne,
      payload: Policies.Content,
      success: Policies.Written
    })
      .annotate(Versioned, true)
      .annotate(BodyBounds, bounds)
      .annotateMerge(
        describe(
          "Set a policy or a list",
          "Adds a version, in force within a second. The same content again adds none. An account has at most 200 policies and lists, of 256 KiB together.",
          { ...one, ...policy }
        )
      ),
    HttpApiEndpoint.get("getPolicy", "/policies/:subject", {
      ...ofOne,
      query: Policies.Query.fields,
      success: Policies.Shown
    }).annotateMerge(
      describe("Ask for a policy", "The version in force, or an earlier one.", { ...one, version: "1" })
    ),
    HttpApiEndpoint.delete("removePolicy", "/policies/:subject", { ...ofOne, success: Policies.Shown })
      .annotate(Versioned, true)
      .annotateMerge(
        describe(
          "Remove a policy or a list",
          "Adds a version without rules. Earlier versions stay readable.",
          one
        )
      ),
    HttpApiEndpoint.get("getPolicyUsage", "/policies/:subject/usage", {
      ...ofOne,
      success: Policies.Usage
    }).annotateMerge(
      describe(
        "Ask what limits have counted",
        "Held and booked amounts in the window of each limit. A wallet without its own policy shows its counts under wallet:*.",
        one
      )
    ),
    HttpApiEndpoint.post("evaluatePolicies", "/policies/evaluate", {
      disableCodecs: true,
      payload: Evaluate.Request,
      success: Evaluate.Response
    })
      .annotate(BodyBounds, bounds)
      .annotateMerge(
        describe(
          "Try policies on a request",
          "Judges the body of another endpoint as if it were posted now, by the policies in force or by drafts. It holds, signs and sends nothing, and simulates nothing: limits of fees are not evaluated. Of the operator's policies only the rules are judged, without amounts, and the answer shows only whether they refuse.",
          {
            endpoint: "/transactSigner",
            request: {
              to: Sample.token,
              funcSignature: "transfer(address,uint256)",
              funcParams: [Sample.recipient, "1000"],
              settings: { rpc: Sample.rpc, signer: Sample.signer }
            },
            policies: { account: policy }
          }
        )
      )
  )
  .annotateEndpoints(RequiredScope, "policies")
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Spending rules of the account's keys, signers and wallets.")

export const useCases = {
  listPolicies: Policies.list,
  setPolicy: Policies.set,
  getPolicy: Policies.get,
  removePolicy: Policies.remove,
  getPolicyUsage: Policies.usage,
  evaluatePolicies: Evaluate.run
}
