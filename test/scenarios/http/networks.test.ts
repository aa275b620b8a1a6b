import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import * as DevService from "../../support/http/DevService.js"

let service: DevService.DevService

beforeAll(async () => {
  service = await DevService.start()
}, 120_000)

afterAll(() => service.stop())

interface Network {
  readonly chainId: number
  readonly entryPoints: ReadonlyArray<{ readonly address: string; readonly version: string }>
  readonly [setting: string]: unknown
}

describe("/networks", () => {
  it("names everything that settings take beside node and signer, and no node", async () => {
    const { settings } = service.info
    const answer = await fetch(`${service.info.baseUrl}/networks`, {
      headers: { "x-api-key": service.info.apiKeys.pro }
    })
    const text = await answer.text()
    const networks: ReadonlyArray<Network> = JSON.parse(text)
    expect(networks.map(({ chainId }) => chainId)).toEqual(
      [137, 8_453, 80_002, 84_532, service.info.chainId].sort((a, b) => a - b)
    )
    const own = networks.find(({ chainId }) => chainId === service.info.chainId)
    expect(own).toMatchObject({
      factory: settings.factory,
      validator: settings.validator,
      beaconAdminAddress: settings.beaconAdminAddress,
      beaconAdminCreationCode: settings.beaconAdminCreationCode,
      entryPoints: Object.entries(service.info.entryPoints).map(([version, address]) => ({
        version,
        address
      }))
    })
    expect(text).not.toContain(new URL(service.info.rpc).host)
  })

  it("is enough to predict a wallet", async () => {
    const headers = { "x-api-key": service.info.apiKeys.pro, "content-type": "application/json" }
    const answer = await fetch(`${service.info.baseUrl}/networks`, { headers })
    const networks = (await answer.json()) as ReadonlyArray<Network>
    const own = networks.find(({ chainId }) => chainId === service.info.chainId)
    if (own === undefined) throw new Error("the development chain is not listed")
    const { beaconAdminAddress, beaconAdminCreationCode, factory } = own
    const accounts = [{ salt: "out of the list", walletCustody: 1 }]
    const predict = async (settings: object) => {
      const predicted = await fetch(`${service.info.baseUrl}/predict`, {
        method: "POST",
        headers,
        body: JSON.stringify({ accounts, settings })
      })
      return (await predicted.json()) as unknown
    }
    expect(await predict({ beaconAdminAddress, beaconAdminCreationCode, factory })).toEqual(
      await predict(service.info.settings)
    )
  })

  it("asks for a key", async () => {
    expect((await fetch(`${service.info.baseUrl}/networks`)).status).toBe(401)
  })
})
