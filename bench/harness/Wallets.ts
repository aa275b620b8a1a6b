import { walletProxyCreationCode } from "../../src/domain/wallet/WalletProxy.generated.js"
import type { Castellan } from "./Castellan.js"
import { ensure } from "./Claim.js"
import type { World } from "./World.js"

/** castellan's wallets of custody 1 and their operations. */

export interface TransactionResult {
  readonly status: number
  readonly txHash: string
  readonly txHashes: ReadonlyArray<string>
}

export const predictSettings = ({ chain }: World) => ({
  factory: chain.suite.factory,
  beaconAdminAddress: chain.suite.beacon,
  beaconAdminCreationCode: walletProxyCreationCode
})

export const predict = async (
  world: World,
  castellan: Castellan,
  salts: ReadonlyArray<string>
): Promise<ReadonlyArray<string>> => {
  const accounts = salts.map((salt) => ({ salt, walletCustody: 1 }))
  const settings = predictSettings(world)
  const found = await castellan.ok<ReadonlyArray<{ readonly wallet: string }>>("/predict", {
    accounts,
    settings
  })
  return found.map(({ wallet }) => wallet)
}

/** Creates wallets in requests of ten, with coins and plenty of the ERC-20. */
export const create = async (
  world: World,
  castellan: Castellan,
  salts: ReadonlyArray<string>
): Promise<ReadonlyArray<string>> => {
  const wallets = (await Promise.all(tens(salts).map((part) => predict(world, castellan, part)))).flat()
  await world.fund(wallets)
  for (const part of tens(salts)) {
    const body = { accounts: part.map((salt) => ({ salt, walletCustody: 1 })), settings: castellan.settings }
    const { status } = await castellan.ok<TransactionResult>("/create", body)
    ensure(status === 1, "wallets were not created")
  }
  await world.mint(wallets)
  return wallets
}

const tens = <A>(list: ReadonlyArray<A>): ReadonlyArray<ReadonlyArray<A>> =>
  Array.from({ length: Math.ceil(list.length / 10) }, (_, n) => list.slice(10 * n, 10 * n + 10))

/** An ERC-20 transfer of 1. */
export const transfer = (world: World, salt: string, to: string) => ({
  salt,
  walletCustody: 1,
  to: world.chain.token,
  funcSignature: "transfer(address,uint256)",
  funcParams: [to, "1"]
})

/** Executes one request of transfers, which must all succeed. `key`: index of the account's key; default: the next. */
export const execute = async (
  world: World,
  castellan: Castellan,
  salts: ReadonlyArray<string>,
  to: string,
  key?: number
): Promise<TransactionResult> => {
  const operations = salts.map((salt) => transfer(world, salt, to))
  const body = { operations, settings: castellan.settings }
  const result = await castellan.ok<TransactionResult>("/execute", body, key)
  ensure(result.status === 1, `an execution failed: ${JSON.stringify(result).slice(0, 500)}`)
  return result
}

let recipients = 0

/** A fresh address: its final balance is the amount that has arrived. */
export const recipient = (): string => {
  recipients += 1
  return `0x${(0xbe7c4 * 2 ** 24 + recipients).toString(16).padStart(40, "b")}`
}
