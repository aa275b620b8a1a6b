import { afterAll, beforeAll, describe, expect, it } from "vitest"
import {
  type CreateResult,
  type DevService,
  type Prediction,
  start,
  type TransactionResult
} from "../../support/http/DevService.js"
import { recorded } from "../../support/http/Examples.js"

let service: DevService
beforeAll(async () => {
  service = await start()
})
afterAll(() => service.stop())

interface Estimate {
  readonly userOps: ReadonlyArray<{ readonly encodedUserOp: string; readonly userOpHash: string }>
}

describe("what the reference shows of endpoints whose answers depend on the moment", () => {
  it("was answered like this, and has the same members today", async () => {
    const { info } = service
    const { entryPoint, rpc, signer } = info.settings
    const { beaconAdminAddress, beaconAdminCreationCode, factory } = info.settings
    const settings = { rpc, entryPoint, signer }
    const accounts = [{ salt: "alice", walletCustody: 1 }]
    const [predicted] = await recorded<ReadonlyArray<Prediction>>(service, "/predict", {
      accounts,
      settings: { factory, beaconAdminAddress, beaconAdminCreationCode }
    })
    const wallet = String(predicted?.wallet)
    await service.fund(wallet)
    expect((await recorded<CreateResult>(service, "/create", { accounts, settings })).status).toBe(1)
    await recorded(service, "/check", { accounts, settings })

    const call = (funcSignature: string, funcParams: ReadonlyArray<string>) => ({
      salt: "alice",
      walletCustody: 1,
      to: info.token,
      funcSignature,
      funcParams
    })
    const mint = call("mint(address,uint256)", [wallet, "1000"])
    const transfer = call("transfer(address,uint256)", [service.signer.address, "250"])
    const executed = await recorded<TransactionResult>(service, "/execute", {
      operations: [mint, transfer],
      settings
    })
    expect(executed.status).toBe(1)

    const { userOps } = await recorded<Estimate>(service, "/estimateGas", {
      operations: [transfer],
      settings
    })
    const encoded = await recorded<TransactionResult>(service, "/executeEncoded", {
      operations: userOps.map(({ encodedUserOp, userOpHash }) => ({
        encodedUserOp,
        userOpHash,
        walletCustody: 1
      })),
      settings
    })
    expect(encoded.status).toBe(1)
    const { funcParams, funcSignature, to } = mint
    await recorded(service, "/transactSigner", { to, funcSignature, funcParams, settings: { rpc, signer } })
    await recorded(service, "/unstuck", { dryRun: true, settings: { rpc, signer } })
    await recorded(service, "/getSigner", { signer })
    await recorded(service, "/getbundleraddress", {})
  })
})
