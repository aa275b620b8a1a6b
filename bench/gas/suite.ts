import type { EntryPointVersion } from "../../src/hosts/cli/deploy/EntryPoints.js"
import { type Chain, devKey } from "../../test/support/suite/Chain.js"
import { configOf, ecdsa, newPasskey, passkeyProof } from "../../test/support/suite/Keys.js"
import { creationOp, execute, signOp } from "../../test/support/suite/Ops.js"
import type { Account } from "./Account.js"

/** This suite's wallets, with an ECDSA owner and with a passkey. Ops are bound to bundler and time, as by the service. */
export const suiteAccounts = async (
  chain: Chain,
  version: EntryPointVersion
): Promise<ReadonlyArray<Account>> => {
  const validUntil = (await chain.now()) + 600
  const conditions = { validUntil, validAfter: 0, bundler: chain.bundler.address }
  const owner = devKey(20)
  const passkey = newPasskey()
  const account = (
    name: string,
    config: ReturnType<typeof configOf>,
    prove: (hash: string) => string
  ): Account => ({
    name,
    source: "contracts/src",
    build: "this suite's settings",
    version,
    creation: (number) => creationOp(chain, version, `${name} ${version} ${number}`, config, conditions),
    execute: (target, data, value) => execute(target, data, value),
    sign: (op) => signOp(chain, version, op, prove, conditions)
  })
  return [
    account("this suite, ECDSA", configOf(1, [owner]), (hash) => ecdsa(hash, owner)),
    account("this suite, passkey", configOf(5, [], [passkey]), (hash) => passkeyProof(hash, passkey))
  ]
}
