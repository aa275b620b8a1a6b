import * as Castellan from "castellan/client"
import type { DevInfo } from "../../src/hosts/cli/dev/DevStack.js"

/** Mints tokens with `castellan/client`: once, although it asks twice. */
export const mintTwice = async (dev: DevInfo) => {
  const client = Castellan.make({ baseUrl: dev.baseUrl, apiKey: dev.apiKeys.pro })
  const settings = { ...dev.settings, paymaster: dev.paymaster }
  const account = { salt: "typescript", walletCustody: 1 } as const
  const [{ wallet } = { wallet: "" }] = await client.predict({ accounts: [account], settings: dev.settings })
  await client.create({ accounts: [account], settings })

  const mint = {
    ...account,
    to: dev.token,
    funcSignature: "mint(address,uint256)",
    funcParams: [wallet, "1000"]
  }
  const execute = async (idempotencyKey: string) => {
    const request = { operations: [mint], settings }
    const { requestId } = await client.execute(request, { async: true, idempotencyKey })
    return client.waitFor<"execute">(requestId)
  }
  const first = await execute("mint-typescript")
  const again = await execute("mint-typescript")
  if (again.txHash !== first.txHash) throw new Error(`executed twice: ${again.txHash}`)
  const { code } = await client
    .execute({ operations: [mint, mint], settings }, { idempotencyKey: "mint-typescript" })
    .then(
      () => ({ code: "accepted" }),
      (error: Castellan.CastellanError) => error
    )
  return { code, txHash: first.txHash, wallet }
}
