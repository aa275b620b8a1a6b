import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import type { Address } from "../../../domain/primitives/Address.js"

/** Most elements of a request that are prepared together. */
export const size = 256

/**
 * Splits the elements into slices of about that size. Connected elements share one slice, however large. A wallet's
 * elements follow each other in order, so that few slices share a wallet.
 */
export const of = (
  dependencies: Dependencies.Dependencies,
  elements: ReadonlyArray<number>,
  walletOf: (index: number) => Address,
  most = size
): ReadonlyArray<ReadonlyArray<number>> => {
  const components = Dependencies.components(dependencies)
  const byWallet = new Map<Address, Map<number, Array<number>>>()
  const walletOfComponent = new Map<number, Address>()
  for (const index of elements) {
    const component = components[index] ?? index
    const wallet = walletOfComponent.get(component) ?? walletOf(index)
    walletOfComponent.set(component, wallet)
    const own = byWallet.get(wallet) ?? new Map<number, Array<number>>()
    byWallet.set(wallet, own)
    const members = own.get(component)
    if (members === undefined) own.set(component, [index])
    else members.push(index)
  }
  const slices: Array<Array<number>> = []
  let open: Array<number> = []
  for (const own of byWallet.values())
    for (const members of own.values()) {
      if (open.length > 0 && open.length + members.length > most) {
        slices.push(open)
        open = []
      }
      for (const index of members) open.push(index)
    }
  if (open.length > 0) slices.push(open)
  return slices.map((slice) => slice.sort((one, other) => one - other))
}
