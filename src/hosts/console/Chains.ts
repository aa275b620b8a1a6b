/** Names, coins and block explorers of chains, for the operator's eyes only. */

export interface Chain {
  readonly name: string
  readonly coin: string
  /** Without a slash at its end; null: none is known. */
  readonly explorer: string | null
}

const known: ReadonlyMap<bigint, readonly [name: string, coin: string, explorer: string | null]> = new Map([
  [1n, ["Ethereum", "ETH", "https://etherscan.io"]],
  [10n, ["Optimism", "ETH", "https://optimistic.etherscan.io"]],
  [56n, ["BNB Chain", "BNB", "https://bscscan.com"]],
  [100n, ["Gnosis", "xDAI", "https://gnosisscan.io"]],
  [137n, ["Polygon", "POL", "https://polygonscan.com"]],
  [1_337n, ["Development chain", "ETH", null]],
  [8_453n, ["Base", "ETH", "https://basescan.org"]],
  [31_337n, ["Development chain", "ETH", null]],
  [42_161n, ["Arbitrum One", "ETH", "https://arbiscan.io"]],
  [42_220n, ["Celo", "CELO", "https://celoscan.io"]],
  [43_114n, ["Avalanche", "AVAX", "https://snowscan.xyz"]],
  [59_144n, ["Linea", "ETH", "https://lineascan.build"]],
  [80_002n, ["Polygon Amoy", "POL", "https://amoy.polygonscan.com"]],
  [84_532n, ["Base Sepolia", "ETH", "https://sepolia.basescan.org"]],
  [421_614n, ["Arbitrum Sepolia", "ETH", "https://sepolia.arbiscan.io"]],
  [534_352n, ["Scroll", "ETH", "https://scrollscan.com"]],
  [11_155_111n, ["Sepolia", "ETH", "https://sepolia.etherscan.io"]],
  [11_155_420n, ["OP Sepolia", "ETH", "https://sepolia-optimism.etherscan.io"]]
])

export const of = (chainId: bigint): Chain => {
  const [name, coin, explorer] = known.get(chainId) ?? [`Chain ${chainId}`, "coins", null]
  return { name, coin, explorer }
}
