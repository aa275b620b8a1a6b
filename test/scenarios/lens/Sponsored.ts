import type { Version } from "../../../src/domain/erc4337/EntryPoint.js"
import * as PaymasterData from "../../../src/domain/erc4337/paymaster/PaymasterData.js"
import * as Sponsorship from "../../../src/domain/erc4337/paymaster/Sponsorship.js"
import { hash } from "../../../src/domain/erc4337/UserOperation.js"
import * as Address from "../../../src/domain/primitives/Address.js"
import * as Hex from "../../../src/domain/primitives/Hex.js"
import type { Op, World } from "./World.js"

/** Far away. */
const until = 4_000_000_000

/** A payer's paymasterAndData: these limits, then its data. */
export interface Payer {
  readonly data: (version: Version, limits: PaymasterData.Limits) => Hex.Hex
  /** Paymaster data that the paymaster expects after the wallet's signature. */
  readonly seal: (version: Version, op: Op) => Hex.Hex
}

/** The suite's paymaster. */
export const sponsor = (world: World): Payer => {
  const paymaster = Address.unsafe(world.suite.paymaster)
  return {
    data: (version, limits) =>
      Sponsorship.paymasterData(version, {
        paymaster,
        limits,
        validUntil: until,
        validAfter: 0,
        unbound: false
      }),
    seal: (version, op) => {
      const userOpHash = hash(version, world.entryPoint(version), 31337n, op)
      const digest = Sponsorship.digest(
        { chainId: 31337n, paymaster },
        userOpHash,
        Address.unsafe(world.submitter.address)
      )
      return Hex.unsafe(world.sponsor.signingKey.sign(digest).serialized)
    }
  }
}

/** A paymaster without a signature check. */
export const unsigned = (paymaster: Address.Address, data: string = "0x"): Payer => ({
  data: (version, limits) => PaymasterData.make(version, { paymaster, limits, data: Hex.unsafe(data) }),
  seal: () => Hex.empty
})

/** Signed by the wallet, then by the payer. */
export const sealed = async (
  world: World,
  version: Version,
  op: Op,
  prove: (hash: string) => string,
  payer: Payer
): Promise<Op> => {
  const signed = await world.sign(version, op, prove)
  return { ...signed, signature: Hex.concat(signed.signature, payer.seal(version, signed)) }
}
