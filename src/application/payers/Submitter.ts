import * as Address from "../../domain/primitives/Address.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"

/**
 * The only EOA that may submit ops signed under this profile (decision 6): the request's own, or any (zero) when an
 * external bundler submits.
 */
export const boundTo = (
  { remoteBundler }: Pick<NetworkProfile, "remoteBundler">,
  submitter: Address.Address
): Address.Address => (remoteBundler === null ? submitter : Address.zero)
