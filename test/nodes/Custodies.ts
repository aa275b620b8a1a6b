import { createPublicKey } from "node:crypto"
import { entryPoints } from "../../src/hosts/cli/deploy/EntryPoints.js"
import { devKeys } from "../../src/hosts/cli/dev/DevKeys.js"
import { NodeProvider } from "../../src/hosts/cli/support/NodeProvider.js"
import * as Authenticator from "../support/passkeys/Authenticator.js"
import { newPasskey, passkeyProof } from "../support/suite/Keys.js"

interface Op {
  readonly encodedUserOp: string
  readonly userOpHash: string
  readonly signingHash: string
}

/** Fields read from an answer, success or failure. */
interface Said {
  readonly status?: number
  readonly results?: ReadonlyArray<Op & { readonly error: string | null }>
  readonly userOps?: ReadonlyArray<Op>
}

/** Sends a request; the body of the answer, whatever its status. */
export type Ask = <A = Said>(
  path: string,
  body: unknown
) => Promise<{ readonly ok: boolean; readonly said: A }>

const signer = { clientId: "s", versionId: "1" }
const cosigner = { clientId: "s", versionId: "2" }

/** A wallet of each custody executes an operation, by each kind of key. Reports the node's refusals. */
export const journey = async (
  ask: Ask,
  rpc: string,
  fact: (name: string, holds: boolean, seen?: unknown) => void
): Promise<void> => {
  const passkey = newPasskey()
  const spki = createPublicKey(passkey.privateKey).export({ type: "spki", format: "der" }).toString("base64")
  const fields: Readonly<Record<number, object>> = {
    1: {},
    2: { passkeyPubKey: [spki] },
    3: { signers: [signer, cosigner], threshold: "2" },
    4: { signers: [signer, cosigner], passkeyPubKey: [spki], threshold: "2" },
    5: { passkeyPubKey: [spki] }
  }
  const settings = { rpc, entryPoint: entryPoints["v0.7"], signer }
  const accounts = Object.entries(fields).map(([custody, rest]) => ({
    salt: `custody ${custody}`,
    walletCustody: Number(custody),
    ...rest
  }))
  const plain = accounts.map(({ salt, walletCustody }) => ({ salt, walletCustody }))
  const { said: found } = await ask<ReadonlyArray<{ readonly wallet: string }>>("/check", {
    accounts: plain,
    settings
  })
  const provider = new NodeProvider(rpc, 31337, { staticNetwork: true, cacheTimeout: -1 })
  const faucet = devKeys.faucet.connect(provider)
  for (const { wallet } of found)
    await (await faucet.sendTransaction({ to: wallet, value: 10n ** 18n })).wait()
  provider.destroy()
  const created = await ask("/create", { accounts, settings })
  fact("wallets of all five custodies are created in one request", created.said.status === 1, created.said)

  const pay = ({ salt, walletCustody }: (typeof plain)[number]) => ({
    salt,
    walletCustody,
    to: devKeys.faucet.address,
    funcSignature: "receive()",
    value: "1"
  })
  const bySigners = { ...settings, cosigners: [cosigner] }
  const operations = plain.filter(({ walletCustody }) => walletCustody < 5).map(pay)
  const executed = await ask("/execute", { operations, settings: bySigners })
  fact("custodies 1 to 4 execute by their owners", executed.said.status === 1, executed.said)

  const withPasskeys = plain.filter(({ walletCustody }) => walletCustody === 2 || walletCustody === 5)
  const own = { rpc, entryPoint: settings.entryPoint }
  const hashed = await ask("/passkeyHash", { operations: withPasskeys.map(pay), settings: own })
  const objections = new Set((hashed.said.results ?? []).map(({ error }) => error))
  if (!objections.has(null)) {
    fact(
      `/passkeyHash refuses before anybody signs: ${[...objections].join()}`,
      objections.size === 1,
      hashed.said
    )
    const prepared = await ask("/estimateGas", { operations: withPasskeys.map(pay), settings })
    const ops = (prepared.said.userOps ?? []).map(({ encodedUserOp, signingHash, userOpHash }, index) => ({
      encodedUserOp,
      userOpHash,
      walletCustody: withPasskeys[index]?.walletCustody,
      signature: passkeyProof(signingHash, passkey)
    }))
    const executed = await ask("/executeEncoded", { operations: ops, settings })
    fact("an account's signer submits what their passkeys sign", executed.said.status === 1, executed.said)
    return
  }
  const signed = (hashed.said.results ?? []).map(({ encodedUserOp, signingHash, userOpHash }) => ({
    encodedUserOp,
    userOpHash,
    validationData: Authenticator.encoded(Authenticator.respond(signingHash, passkey))
  }))
  const done = await ask("/executePasskey", { operations: signed, settings: own })
  fact(
    "custodies 2 and 5 execute by their passkey, submitted by the service's EOA",
    done.said.status === 1,
    done.said
  )
}
