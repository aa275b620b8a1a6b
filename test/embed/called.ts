import * as Client from "castellan/client"

const apiKey = process.env.API_KEY ?? ""
const signer = { clientId: "treasury", versionId: "1" }

const client = Client.make({ baseUrl: "https://castellan.example/wallets", apiKey })
const { address } = await client.getSigner({ signer })

export const signs = address

export const follow = async (requestId: string) => {
  for await (const { type, data } of client.events(requestId)) console.log(type, data)
}

export const watch = async (webhookId: string, eventDef: string, wallet: string) => {
  const { watchId } = await client.watches.add({ webhookId, eventDef, chainId: 8453, fields: { to: wallet } })
  await client.watches.change(watchId, { state: "paused" })
  return watchId
}
