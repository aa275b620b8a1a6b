import { describe, expect, it } from "@effect/vitest"
import { perFile } from "../../support/http/SharedService.js"

const service = perFile()

interface Network {
  readonly chainId: number
  readonly entryPoints: ReadonlyArray<{ readonly address: string; readonly version: string }>
  readonly [setting: string]: unknown
}

describe("/networks", () => {
  it("lists everything that settings take except node and signer, and no node", async () => {
    const { settings } = service.info
    const answer = await fetch(`${service.info.baseUrl}/networks`, {
      headers: { "x-api-key": service.info.apiKeys.enterprise }
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
})
