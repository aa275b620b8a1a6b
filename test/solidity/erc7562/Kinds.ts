import { concat } from "ethers"
import type { EntryPointVersion } from "../../../src/hosts/cli/deploy/EntryPoints.js"
import { type Chain, devKey } from "../../support/suite/Chain.js"
import { assertion, configOf, ecdsa, indexIn, newPasskey, passkeyProof } from "../../support/suite/Keys.js"
import { type Conditions, type Config, mixedProof, unbound } from "../../support/suite/Layouts.js"
import {
  authorize,
  createWallet,
  execute,
  initCodeOf,
  newOp,
  nonceOf,
  type Op,
  predict,
  signOp
} from "../../support/suite/Ops.js"
import { sponsorship, withPaymaster } from "../../support/suite/Sponsor.js"

const owners = [devKey(20), devKey(21), devKey(22)]
const passkey = newPasskey()

/** A kind of op: its words in the table, and an example of it on a version. */
export interface Kind {
  readonly words: string
  readonly op: (version: EntryPointVersion) => Promise<Op>
}

type Prove = (hash: string) => string

/** The op with a sponsorship for the bundler of these conditions behind the wallet's signature. */
const withSponsor = async (
  chain: Chain,
  version: EntryPointVersion,
  op: Op,
  { bundler }: Conditions
): Promise<Op> => ({
  ...op,
  signature: concat([op.signature, await sponsorship(chain, version, op, chain.sponsor, { bundler })])
})

/** Operations that a wallet of this configuration signs. The wallet is created when the first one is. */
const operationsOf = (chain: Chain, salt: string, config: Config, prove: Prove) => {
  let wallet: Promise<string> | null = null
  const address = () => {
    wallet ??= createWallet(chain, "v0.7", salt, config).then((created) => created.getAddress())
    return wallet
  }
  const send = execute(chain.stranger.address, "0x", 1n)
  const unsigned = async (version: EntryPointVersion, callData = send): Promise<Op> => {
    const sender = await address()
    return newOp(sender, { nonce: await nonceOf(chain, version, sender), callData })
  }
  return {
    address,
    /** An unbound op with this callData. */
    calling: async (version: EntryPointVersion, callData: string): Promise<Op> =>
      signOp(chain, version, await unsigned(version, callData), prove),
    signed:
      (conditions: Conditions): Kind["op"] =>
      async (version) =>
        signOp(chain, version, await unsigned(version), prove, conditions),
    sponsored:
      (conditions: Conditions): Kind["op"] =>
      async (version) => {
        const unboundToo = conditions.bundler === unbound.bundler
        const op = withPaymaster(chain, version, await unsigned(version), { unbound: unboundToo })
        return withSponsor(chain, version, await signOp(chain, version, op, prove, conditions), conditions)
      }
  }
}

const single = configOf(1, owners.slice(0, 1))
const bySingle: Prove = (hash) => ecdsa(hash, ...owners.slice(0, 1))
const union = configOf(4, owners, [passkey], 2)
const byUnion: Prove = (hash) =>
  mixedProof(ecdsa(hash, ...owners.slice(0, 1)), [
    assertion(hash, passkey, { index: indexIn(union, passkey) })
  ])

/** Operations of a passkey. */
export const passkeyKind = (chain: Chain, words: string): Kind => ({
  words,
  op: operationsOf(chain, "passkey", configOf(5, [], [passkey]), (hash) =>
    passkeyProof(hash, passkey)
  ).signed(unbound)
})

/** Operations of a wallet with a lone ECDSA owner. */
export const ecdsaOperations = (chain: Chain, salt: string) => operationsOf(chain, salt, single, bySingle)

/** An unsigned creation, whose authorisation is for the bundler of these conditions. */
const unsignedCreation = async (chain: Chain, salt: string, { bundler }: Conditions): Promise<Op> => {
  const grant = await authorize(chain, salt, single, { bundler })
  const sender = await predict(chain, salt, single.custody)
  return newOp(sender, { initCode: initCodeOf(chain.suite.factory, salt, single, grant) })
}

/** Creations: unbound, bound to their bundler, and sponsored. */
export const creationKinds = (chain: Chain, bound: Conditions): ReadonlyArray<Kind> => {
  const byDeployer: Prove = (hash) => ecdsa(hash, chain.deployer)
  const creation =
    (name: string, conditions: Conditions): Kind["op"] =>
    async (version) => {
      const op = await unsignedCreation(chain, `${name} ${version}`, conditions)
      await chain.fund(op.sender)
      return signOp(chain, version, op, byDeployer, conditions)
    }
  return [
    { words: "creation, unbound", op: creation("unbound", unbound) },
    { words: "creation, bound to its bundler", op: creation("bound", bound) },
    {
      words: "creation, unbound, sponsored",
      op: async (version) => {
        const made = await unsignedCreation(chain, `sponsored ${version}`, unbound)
        const op = withPaymaster(chain, version, made, { unbound: true })
        return withSponsor(chain, version, await signOp(chain, version, op, byDeployer), unbound)
      }
    }
  ]
}

/** Operations of wallets that exist, on a chain with the P-256 precompile. */
export const operationKinds = (chain: Chain, bound: Conditions): ReadonlyArray<Kind> => {
  const { signed, sponsored: paid } = ecdsaOperations(chain, "ecdsa")
  const window = { ...bound, bundler: unbound.bundler }
  return [
    { words: "ECDSA, unbound", op: signed(unbound) },
    { words: "ECDSA, unbound, with a window", op: signed(window) },
    { words: "ECDSA, bound to its bundler", op: signed(bound) },
    passkeyKind(chain, "passkey, unbound, P-256 precompile"),
    {
      words: "multisig through the validator, unbound",
      op: operationsOf(chain, "multisig", configOf(3, owners, [], 2), (hash) =>
        ecdsa(hash, ...owners.slice(0, 2))
      ).signed(unbound)
    },
    {
      words: "owner and passkey through the validator, unbound",
      op: operationsOf(chain, "union", union, byUnion).signed(unbound)
    },
    { words: "ECDSA, unbound, sponsored", op: paid(unbound) },
    { words: "ECDSA, bound to its bundler, sponsored", op: paid(bound) }
  ]
}
