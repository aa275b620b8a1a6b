import type { DevInfo } from "./DevStack.js"

/** The pages of a development stack. */

/**
 * URL of the playground with its fields filled in. The values are in the fragment, which browsers never send. Uses
 * localhost: browsers create no passkeys for IP addresses.
 */
export const playground = ({ apiKeys, baseUrl, chainId, rpc, settings, token }: DevInfo): string => {
  const page = new URL("/playground", baseUrl)
  page.hostname = "localhost"
  const { clientId, versionId } = settings.signer
  page.hash = `key=${apiKeys.pro}&chain=${chainId}&rpc=${rpc}&token=${token}&signer=${clientId}/${versionId}`
  return page.href
}

/** URL of the page that describes every endpoint and sends requests. */
export const api = ({ baseUrl }: DevInfo): string => new URL("/docs", baseUrl).href
