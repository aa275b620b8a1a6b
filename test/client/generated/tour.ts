import createClient from "openapi-fetch"
import type { paths } from "./schema.js"

/** Service and chain of the tour. */
export interface Place {
  readonly baseUrl: string
  readonly apiKey: string
  readonly settings: {
    readonly rpc: string
    readonly entryPoint: string
    readonly factory: string
    readonly beaconAdminAddress: string
    readonly beaconAdminCreationCode: string
    readonly signer: { readonly clientId: string; readonly versionId: string }
  }
  readonly paymaster: string
  readonly token: string
}

const got = <A>({ data, error }: { readonly data?: A | undefined; readonly error?: unknown }): A => {
  if (data === undefined) throw new Error(JSON.stringify(error))
  return data
}

/**
 * From a salt to a token, by a client whose types openapi-typescript makes of /openapi.json. The types of schema.ts exist
 * only in the folder of the test that compiles this file.
 */
export const tour = async ({ apiKey, baseUrl, paymaster, settings, token }: Place) => {
  const client = createClient<paths>({ baseUrl, headers: { "X-API-Key": apiKey } })
  const { beaconAdminAddress, beaconAdminCreationCode, entryPoint, factory, rpc, signer } = settings
  const accounts = [{ salt: "generated", walletCustody: 1 as const }]
  const sponsored = { rpc, entryPoint, signer, paymaster }

  const predicted = got(
    await client.POST("/predict", {
      body: { accounts, settings: { factory, beaconAdminAddress, beaconAdminCreationCode } }
    })
  )
  const wallet = predicted[0]?.wallet ?? ""
  const created = got(await client.POST("/create", { body: { accounts, settings: sponsored } }))
  const checked = got(await client.POST("/check", { body: { accounts, settings: { rpc } } }))

  const operation = {
    salt: "generated",
    walletCustody: 1 as const,
    to: token,
    funcSignature: "mint(address,uint256)",
    funcParams: [wallet, "1000"]
  }
  const write = {
    params: { header: { "Idempotency-Key": "generated" } },
    body: { operations: [operation], settings: sponsored }
  }
  const executed = got(await client.POST("/execute", write))
  const repeated = got(await client.POST("/execute", write))
  if (!("txHash" in executed) || !("txHash" in repeated)) throw new Error("accepted, and not done")

  const receipt = got(await client.POST("/receipt", { body: { txHashes: [executed.txHash], rpc } }))
  const read = got(
    await client.POST("/read", {
      body: {
        rpc,
        reads: [
          {
            to: token,
            funcSignature: "balanceOf(address)",
            funcParams: [wallet],
            returnSignature: "uint256"
          }
        ]
      }
    })
  )
  const requests = got(await client.GET("/requests", { params: { query: { limit: "1" } } }))
  const requestId = requests.requests[0]?.requestId ?? ""
  const request = got(await client.GET("/requests/{requestId}", { params: { path: { requestId } } }))
  const networks = got(await client.GET("/networks"))
  const refused = await client.POST("/predict", {
    body: { accounts: [], settings: { factory: "0x", beaconAdminAddress, beaconAdminCreationCode } }
  })
  return {
    wallet,
    created: "status" in created ? created.status : null,
    exists: checked[0]?.exists,
    sameTransaction: executed.txHash === repeated.txHash,
    receipts: receipt.receipts.map(({ txHash }) => txHash),
    txHash: executed.txHash,
    balance: read[0]?.results?.[0],
    state: request.state,
    chains: networks.map(({ chainId }) => chainId),
    code: refused.error?.code
  }
}
