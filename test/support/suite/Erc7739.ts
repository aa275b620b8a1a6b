import { AbiCoder, concat, id, keccak256, TypedDataEncoder } from "ethers"
import type { Chain } from "./Chain.js"

/** The domain of a wallet. */
export const domainOf = (chain: Pick<Chain, "chainId">, verifyingContract: string) => ({
  name: "castellan",
  version: "1",
  chainId: chain.chainId,
  verifyingContract
})

/** ERC-7739, personal sign: the hash nested under the wallet's domain. */
export const personalDigest = (chain: Pick<Chain, "chainId">, hash: string, wallet: string): string =>
  keccak256(
    concat([
      "0x1901",
      TypedDataEncoder.hashDomain(domainOf(chain, wallet)),
      keccak256(
        AbiCoder.defaultAbiCoder().encode(["bytes32", "bytes32"], [id("PersonalSign(bytes prefixed)"), hash])
      )
    ])
  )
