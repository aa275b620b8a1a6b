import type { Pages } from "../message/Pages.js"
import * as Html from "./Html.js"
import * as Passkeys from "./Passkeys.generated.js"
import * as Script from "./Script.js"
import * as Style from "./Style.js"

/** Its own files, and requests to this service: nothing inline, nothing from elsewhere. */
const policy =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/** A page that holds a passkey and uses the service with it. For development: whoever opens it brings an API key. */
export const pages: Pages = new Map([
  [
    "/playground",
    {
      contentType: "text/html; charset=utf-8",
      body: Html.page,
      headers: { "content-security-policy": policy }
    }
  ],
  ["/playground/passkeys.js", { contentType: "text/javascript; charset=utf-8", body: Passkeys.script }],
  ["/playground/script.js", { contentType: "text/javascript; charset=utf-8", body: Script.script }],
  ["/playground/style.css", { contentType: "text/css; charset=utf-8", body: Style.style }]
])
