import * as Pages from "../message/Pages.js"

const file = (name: string, contentType: string, headers?: Pages.Page["headers"]) =>
  Pages.file(() => new URL(name, import.meta.url), contentType, headers)

/** A page that holds a passkey and uses the service with it. For development: the user enters an API key. */
export const pages: Pages.Pages = new Map([
  ["/playground", file("page.html", "text/html", { "content-security-policy": Pages.policy })],
  ["/playground/passkeys.js", file("passkeys.js", "text/javascript")],
  ["/playground/script.js", file("script.js", "text/javascript")],
  ["/playground/style.css", file("style.css", "text/css")]
])
