import type * as Plan from "./Plan.js"

/** What the configuration of a service says of a chain that a plan has been carried out on. */
export interface NetworkEntry {
  readonly networks: ReadonlyArray<Readonly<Record<string, unknown>>>
  /** By account, to be put into its entry of `accounts`; or `castellan accounts set-network`. */
  readonly accounts: ReadonlyArray<{
    readonly id: string
    readonly networks: ReadonlyArray<Readonly<Record<string, unknown>>>
  }>
}

/** The name of the environment variable that is to hold the URL of the node, which may carry a key. */
export const rpcVariable = (chainId: number): string => `CASTELLAN_RPC_${chainId}`

export const make = (
  chainId: number,
  { steps }: Plan.Plan,
  accounts: ReadonlyArray<string>,
  implementationCodeHash: string | null
): NetworkEntry => {
  const at = (name: string) => steps.find((step) => step.name === name)?.address
  const factory = at("factory")
  const paymaster = at("paymaster")
  return {
    networks: [
      {
        chainId,
        rpc: { env: rpcVariable(chainId) },
        ...(factory !== undefined && { factory }),
        validator: at("validator"),
        beaconAdminAddress: at("beacon"),
        ledger: at("ledger"),
        ...(implementationCodeHash !== null && { implementationCodeHash }),
        ...(paymaster !== undefined && { sponsor: { paymaster, dailyBudget: "0" } })
      }
    ],
    accounts: accounts.map((id) => ({ id, networks: [{ chainId, factory: at(`factory of ${id}`) }] }))
  }
}
