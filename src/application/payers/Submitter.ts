import * as Address from "../../domain/primitives/Address.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"

/**
 * The only EOA that may submit what is signed under this profile (decision 6): the request's own, or anybody (zero)
 * when a bundler of somebody else does.
 */
export const boundTo = (
  { remoteBundler }: Pick<NetworkProfile, "remoteBundler">,
  submitter: Address.Address
): Address.Address => (remoteBundler === null ? submitter : Address.zero)
