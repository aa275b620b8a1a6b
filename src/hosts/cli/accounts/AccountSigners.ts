import * as Argument from "effect/cli/Argument"
import * as Command from "effect/cli/Command"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as KeyRing from "../../../application/keys/KeyRing.js"
import type { SignerRef } from "../../../application/ports/Signers.js"
import type { OwnSigner } from "../../../application/ports/TenantStore.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as AccountSigners from "../../config/AccountSigners.js"
import * as Wiring from "../../Wiring.js"
import { help, json, optional, report, required, type Why } from "../support/Operator.js"
import * as OperatorContext from "../support/OperatorContext.js"

const id = Argument.String("ID").pipe(Argument.withDescription("an account of the database"))

const reference = {
  clientId: required("client-id", "ID", "clientId of the signer in requests"),
  versionId: optional("version-id", "ID", "versionId, for keys in an HSM or KMS"),
  assetId: optional("asset-id", "ID", "assetId, for MPC; one of the two")
}

const refOf = ({ assetId, clientId, versionId }: SignerRef): Effect.Effect<SignerRef, string> => {
  const named = [clientId, versionId ?? assetId ?? ""].every(
    (text) => text !== "" && text === text.trim() && text.length <= 128
  )
  return named && (versionId === undefined) !== (assetId === undefined)
    ? Effect.succeed({
        clientId,
        ...(versionId !== undefined && { versionId }),
        ...(assetId !== undefined && { assetId })
      })
    : Effect.fail("expected --client-id and one of --version-id and --asset-id, 1 to 128 characters each")
}

/** The key's address, checked against all other keys of the service. */
const check = (
  { config, content }: OperatorContext.OperatorContext,
  signer: OwnSigner
): Effect.Effect<Address.Address, Why> =>
  Effect.gen(function* () {
    const ring = yield* KeyRing.make(Wiring.registry(config.keys))
    yield* ring.admit([...content.signers, signer].map(AccountSigners.recordOf))
    const { address } = yield* ring.signers.resolve(signer.accountId, signer.ref)
    return address
  }).pipe(Effect.scoped)

const add = Command.make("add-signer", {
  id,
  ...reference,
  provider: required("provider", "NAME", 'of "providers" in the configuration'),
  key: required("key", "NAME", "the key in the provider's own terms: label, ARN, resource name"),
  pinned: optional(
    "address",
    "ADDRESS",
    "the address that it must have; with it, the service also starts while the provider is down"
  ),
  json
}).pipe(
  help(
    "Adds a key of a configured provider to an account's signers. The command reads the providers' addresses first, because an EOA belongs to at most one account.",
    "acme --client-id acme --version-id 1 --provider hsm --key acme-1"
  ),
  report(function* ({ id, key, pinned, provider, ...named }) {
    const ref = yield* refOf(named)
    const address =
      pinned === undefined
        ? null
        : yield* Effect.fromResult(
            Result.mapError(Address.from(pinned), ({ message }) => `--address: ${message}`)
          )
    const { account, ...context } = yield* OperatorContext.openForOwn(id)
    if (!context.config.keys.providers.some(({ name }) => name === provider))
      return yield* Effect.fail(`the configuration has no provider called ${provider}`)
    const signer = { accountId: account.accountId, ref, provider, key, address }
    const found = yield* check(context, signer)
    yield* context.store.addSigner(signer)
    return {
      text: `account ${id} has the signer ${JSON.stringify(ref)}: ${found}`,
      json: { account: id, ...ref, provider, key, address: found }
    }
  })
)

const remove = Command.make("remove-signer", { id, ...reference, json }).pipe(
  help(
    "Removes a signer of the database from an account. Transactions that it sent before are settled at their present price.",
    "acme --client-id acme --version-id 1"
  ),
  report(function* ({ id, ...named }) {
    const ref = yield* refOf(named)
    const { account, ...context } = yield* OperatorContext.openForOwn(id)
    const signer = { accountId: account.accountId, ref }
    if (!context.content.signers.some((each) => AccountSigners.isSame(each, signer)))
      return yield* Effect.fail(`account ${id} has no signer ${JSON.stringify(ref)} in the database`)
    yield* context.store.removeSigner(account.accountId, ref)
    return {
      text: `account ${id} no longer has the signer ${JSON.stringify(ref)}`,
      json: { account: id, ...ref, removed: true }
    }
  })
)

export const commands = [add, remove] as const
