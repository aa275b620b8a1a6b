import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as ErrorEnvelope from "../message/ErrorEnvelope.js"
import { TextAnswer, Unlimited } from "./EndpointAnnotations.js"

const Health = Schema.Struct({ status: Schema.Literals(["live", "ready"]) }).annotate({
  identifier: "Health"
})

const failures = [ErrorEnvelope.schemas[400], ErrorEnvelope.schemas[500], ErrorEnvelope.schemas[503]]

const html = "text/html; charset=utf-8"

/** The service itself. These endpoints need no key. */
export const group = HttpApiGroup.make("service")
  .add(
    HttpApiEndpoint.get("live", "/health/live", { disableCodecs: true, success: Health, error: failures })
      .annotate(Unlimited, true)
      .annotate(OpenApi.Summary, "Liveness")
      .annotate(OpenApi.Description, "Answers as long as the process does.")
  )
  .add(
    HttpApiEndpoint.get("ready", "/health/ready", { disableCodecs: true, success: Health, error: failures })
      .annotate(Unlimited, true)
      .annotate(OpenApi.Summary, "Readiness")
      .annotate(
        OpenApi.Description,
        "200 while the service takes requests, 503 once it is about to stop, and while its database does not answer within a second."
      )
  )
  .add(
    HttpApiEndpoint.get("openapi", "/openapi.json", {
      disableCodecs: true,
      success: Schema.Json.annotate({ description: "An OpenAPI 3.1 document." }),
      error: [...failures, ErrorEnvelope.schemas[429]]
    })
      .annotate(OpenApi.Summary, "This interface as OpenAPI 3.1")
      .annotate(OpenApi.Description, "For generators of clients, and for checks: every answer fits it.")
  )
  .add(
    HttpApiEndpoint.get("docs", "/docs", {
      disableCodecs: true,
      success: Schema.String.annotate({ description: "An HTML page." }).pipe(
        HttpApiSchema.asText({ contentType: html })
      ),
      error: [...failures, ErrorEnvelope.schemas[429]]
    })
      .annotate(TextAnswer, html)
      .annotate(OpenApi.Summary, "This interface for people")
      .annotate(
        OpenApi.Description,
        "A page that shows this document, and sends requests with the key that you enter."
      )
  )
  .annotate(OpenApi.Description, "Health and documentation. No key needed.")
