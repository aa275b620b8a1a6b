import { type BaseWallet, concat } from "ethers"
import type { EntryPointVersion } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import type { Chain } from "./Chain.js"
import { ecdsa } from "./Keys.js"
import { type SponsorTerms, sponsorshipData, sponsorshipDigest } from "./Layouts.js"
import { hashOf, type Op } from "./Ops.js"

/** Terms of the suite's paymaster, by default without a window and with enough gas. */
export const termsOf = (
  chain: Chain,
  version: EntryPointVersion,
  terms: Partial<SponsorTerms> = {}
): SponsorTerms => ({
  paymaster: chain.suite.paymaster,
  validUntil: 0,
  validAfter: 0,
  limits: version === "v0.6" ? null : { verificationGasLimit: 60_000n, postOpGasLimit: 0n },
  unbound: false,
  ...terms
})

/** The unsigned op with the paymaster's data. */
export const withPaymaster = (
  chain: Chain,
  version: EntryPointVersion,
  op: Op,
  terms: Partial<SponsorTerms> = {}
): Op => ({ ...op, paymasterAndData: sponsorshipData(termsOf(chain, version, terms)) })

/** The sponsor's 65-byte signature for this op, by default for the chain's bundler. */
export const sponsorship = async (
  chain: Chain,
  version: EntryPointVersion,
  op: Op,
  by: BaseWallet = chain.sponsor,
  domain: { readonly chainId?: bigint; readonly paymaster?: string; readonly bundler?: string } = {}
): Promise<string> =>
  ecdsa(
    sponsorshipDigest(
      domain.chainId ?? chain.chainId,
      domain.paymaster ?? chain.suite.paymaster,
      await hashOf(chain, version, op),
      domain.bundler ?? chain.bundler.address
    ),
    by
  )

/** The signed op with the sponsor's signature after the wallet's. */
export const sponsored = async (chain: Chain, version: EntryPointVersion, op: Op): Promise<Op> => ({
  ...op,
  signature: concat([op.signature, await sponsorship(chain, version, op)])
})
