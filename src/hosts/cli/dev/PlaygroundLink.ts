import type { DevInfo } from "./DevStack.js"

/**
 * The playground with all of its fields filled in. The values are in the fragment, which browsers keep to themselves. By
 * name, not by address: browsers make no passkeys for addresses.
 */
export const of = ({ apiKeys, baseUrl, paymaster, settings, token }: DevInfo): string => {
  const { entryPoint, rpc, signer } = settings
  const values = { apiKey: apiKeys.pro, rpc, settings: { entryPoint, signer, paymaster }, token }
  const page = new URL("/playground", baseUrl)
  page.hostname = "localhost"
  page.hash = encodeURIComponent(JSON.stringify(values))
  return page.href
}
