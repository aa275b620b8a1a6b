import * as Effect from "effect/Effect"
import type { SignerRecord } from "../../../application/keys/KeyRingRegistry.js"
import * as Secp256k1 from "../../../domain/crypto/Secp256k1.js"
import * as KeyProviders from "../../keys/KeyProviders.js"
import * as Command from "../support/Command.js"
import * as OperatorContext from "../support/OperatorContext.js"

/** One more than the largest number that is a version of this client. */
const nextVersion = (signers: ReadonlyArray<SignerRecord>, clientId: string): string => {
  const versions = signers.flatMap((record) =>
    record.clientId === clientId && /^\d{1,9}$/.test(record.versionId ?? "") ? [Number(record.versionId)] : []
  )
  return String(Math.max(0, ...versions) + 1)
}

export const create = Command.make({
  name: "create",
  about:
    'Makes a key that can not be extracted on the token of a provider of kind pkcs11. Prints its address, its public key and what goes into the configuration\'s "signers".',
  examples: ["--provider hsm --key acme-1 --account acme"],
  flags: {
    name: Command.required("provider", "NAME", 'of "providers" in the configuration'),
    key: Command.required("key", "LABEL", "label of the key on the token"),
    owner: Command.optional("account", "ID", "the account that gets the key; default: the only account"),
    client: Command.optional("client-id", "ID", "clientId in requests; default: the account's id")
  },
  run: function* ({ client, key, name, owner }) {
    const { accounts, keys } = yield* OperatorContext.config
    if (key === "" || key !== key.trim() || key.length > 512)
      return yield* Effect.fail("--key: expected 1 to 512 characters without outer white space")
    const provider = keys.providers.find((each) => each.name === name)
    if (provider === undefined) return yield* Effect.fail(`the configuration has no provider called ${name}`)
    const creation = KeyProviders.createKey(provider, key)
    if (creation === null)
      return yield* Effect.fail(
        `keys of kind ${provider.kind} are not made by this command: see ${KeyProviders.kinds[provider.kind].help.page}`
      )
    if (owner !== undefined && !accounts.some(({ accountId }) => accountId === owner))
      return yield* Effect.fail(`the configuration has no account called ${owner}`)
    const account = owner ?? (accounts.length === 1 ? accounts[0]?.accountId : undefined) ?? "ACCOUNT"
    const publicKey = yield* Effect.mapError(creation, ({ message }) => `no key was made: ${message}`)
    const address = Secp256k1.addressOf(publicKey)
    const clientId = client ?? account
    const entry = {
      accounts: [account],
      clientId,
      versionId: nextVersion(keys.signers, clientId),
      provider: name,
      key,
      address
    }
    return {
      text: [
        `address:    ${address}`,
        `public key: ${publicKey}`,
        'for "signers" in the configuration:',
        JSON.stringify(entry, null, 2)
      ].join("\n"),
      json: { address, publicKey, signer: entry }
    }
  }
})
