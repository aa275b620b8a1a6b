import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { describe, Unlimited } from "./EndpointAnnotations.js"

const Live = Schema.Struct({ status: Schema.Literal("live") }).annotate({ identifier: "Live" })

const Ready = Schema.Struct({
  status: Schema.Literal("ready"),
  nodes: Schema.Record(Schema.String, Schema.Literals(["up", "down", "unknown"])).annotate({
    description:
      "By decimal chain id: whether the operator's node answered the last poll, a few seconds ago. unknown: the service has not asked it. Requests of the other chains are served."
  })
}).annotate({ identifier: "Ready" })

const failures = [ErrorEnvelope.schemas[400], ErrorEnvelope.schemas[500], ErrorEnvelope.schemas[503]]

const html = "text/html; charset=utf-8"

/** The service itself. These endpoints need no key. */
export const group = HttpApiGroup.make("service")
  .add(
    HttpApiEndpoint.get("live", "/health/live", { disableCodecs: true, success: Live, error: failures })
      .annotate(Unlimited, true)
      .annotateMerge(describe("Liveness", "Answers as long as the process does.")),
    HttpApiEndpoint.get("ready", "/health/ready", { disableCodecs: true, success: Ready, error: failures })
      .annotate(Unlimited, true)
      .annotateMerge(
        describe(
          "Readiness",
          "200 while the service takes requests, 503 once it is about to stop, and while its database does not answer within a second."
        )
      ),
    HttpApiEndpoint.get("openapi", "/openapi.json", {
      disableCodecs: true,
      success: Schema.Json.annotate({ description: "An OpenAPI 3.1 document." }),
      error: [...failures, ErrorEnvelope.schemas[429]]
    }).annotateMerge(
      describe(
        "This interface as OpenAPI 3.1",
        "For generators of clients, and for checks: every answer fits it."
      )
    ),
    HttpApiEndpoint.get("docs", "/docs", {
      disableCodecs: true,
      success: Schema.String.annotate({ description: "An HTML page." }).pipe(
        HttpApiSchema.asText({ contentType: html })
      ),
      error: [...failures, ErrorEnvelope.schemas[429]]
    }).annotateMerge(
      describe(
        "This interface for people",
        "A page that shows this document, and sends requests with the key that you enter."
      )
    )
  )
  .annotate(OpenApi.Description, "Health and documentation. No key needed.")
