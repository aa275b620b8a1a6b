import type { DevInfo } from "./DevStack.js"

/** The pages of a development stack. */

/**
 * URL of the playground with its fields filled in. The values are in the fragment, which browsers never send. Uses
 * localhost: browsers create no passkeys for IP addresses.
 */
export const playground = ({ apiKeys, baseUrl, rpc, token }: DevInfo): string => {
  const page = new URL("/playground", baseUrl)
  page.hostname = "localhost"
  page.hash = `key=${apiKeys.pro}&rpc=${rpc}&token=${token}`
  return page.href
}

/** URL of the page that describes every endpoint and sends requests. */
export const api = ({ baseUrl }: DevInfo): string => new URL("/docs", baseUrl).href
