import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Documents from "../../../domain/policy/Documents.js"
import * as Address from "../../../domain/primitives/Address.js"
import * as Hex from "../../../domain/primitives/Hex.js"
import * as Counterfactual from "../../../domain/signature/Counterfactual.js"
import * as NestedMessage from "../../../domain/signature/NestedMessage.js"
import * as OperationProof from "../../../domain/signature/OperationProof.js"
import * as PersonalMessage from "../../../domain/signature/PersonalMessage.js"
import * as Proof from "../../../domain/signature/Proof.js"
import * as ProofVerification from "../../../domain/signature/ProofVerification.js"
import * as TypedData from "../../../domain/signature/typed/TypedData.js"
import * as WebAuthn from "../../../domain/signature/WebAuthn.js"
import * as Deployment from "../../../domain/wallet/Deployment.js"
import type { WalletConfig } from "../../../domain/wallet/WalletConfig.js"
import { ChainFacts } from "../../chain/ChainFacts.js"
import * as Connection from "../../chain/Connection.js"
import { type InvalidRequest, invalidAt, unauthorized, unprocessable } from "../../failures/Failure.js"
import * as Reasons from "../../failures/Reasons.js"
import * as Keys from "../../keys/Keys.js"
import * as Span from "../../observe/Span.js"
import * as Reading from "../../policies/Reading.js"
import * as Signing from "../../policies/Signing.js"
import { RequestJournal } from "../../ports/journal/RequestJournal.js"
import { type Signer, SystemSigners } from "../../ports/Signers.js"
import * as GivenOps from "../../prepare/given/GivenOps.js"
import * as OpContext from "../../prepare/OpContext.js"
import * as SignerAuthorization from "../../prepare/SignerAuthorization.js"
import * as Snapshot from "../../prepare/Snapshot.js"
import * as Account from "../../prepare/wallets/Account.js"
import type * as WalletSpecs from "../../prepare/wallets/WalletSpecs.js"
import type { Caller } from "../../request/Caller.js"
import * as Decoding from "../../request/Decoding.js"
import { Custody, optional, SaltText, shown } from "../../request/Fields.js"
import * as Settings from "../../request/Settings.js"
import * as EventLoop from "../../runtime/EventLoop.js"
import * as KillSwitch from "../../tenants/KillSwitch.js"
import * as MessageWallet from "./MessageWallet.js"

/**
 * Signs a message as a wallet (ERC-1271, ERC-7739; ERC-6492 before it is deployed).
 *
 * Gotchas: the service stores no proof. Callers keep the proofs of other validators and post them together.
 */

const GivenProof = Schema.Struct({
  signature: shown(optional(Hex.schema), {
    description:
      "Signatures over signingHash or its EIP-191 form: of 65 bytes (r, s, v) one behind the other, or all of 64 (EIP-2098), or the ABI form with passkeys."
  }),
  validationData: optional(
    Schema.Struct(GivenOps.assertion).annotate({ identifier: "MessageAssertion" })
  ).annotateKey({ description: "A passkey's assertion, as the browser gives it." })
}).annotate({ identifier: "MessageProof" })

export const Request = Schema.Struct({
  wallet: optional(Schema.String).annotateKey({
    description: "Address of a deployed wallet. Required if salt and account are absent."
  }),
  salt: optional(SaltText).annotateKey({
    description: "Salt of a deployed wallet. Required if wallet and account are absent."
  }),
  walletCustody: optional(Custody).annotateKey({
    description:
      "Required with wallet or salt. 0: the wallet's own; with only a salt, the operator's default."
  }),
  account: optional(Account.schema).annotateKey({
    description:
      "The wallet as in /create, instead of wallet, salt and walletCustody. Required when it is not deployed. With it the key needs the scope write too."
  }),
  message: optional(Schema.String).annotateKey({
    description:
      "Signed as EIP-191 personal message: text, or the bytes of 0x and an even number of hex digits. Exactly one of message and typedData."
  }),
  typedData: optional(Schema.Record(Schema.String, Schema.Unknown)).annotateKey({
    description: "An EIP-712 document of types, primaryType, domain and message, all of its domain written."
  }),
  proofs: optional(Schema.Array(GivenProof), []).annotateKey({
    description: "Signatures over signingHash by validators that settings does not name. At most 32."
  }),
  settings: Settings.ForMessages
}).annotate({ identifier: "SignMessageRequest" })
export type Request = typeof Request.Type

const Signed = Schema.Struct({
  status: Schema.Literal(1).annotate({ description: "Signed." }),
  wallet: Schema.String,
  hash: Schema.String.annotate({
    description: "The hash of the message that applications pass to isValidSignature: EIP-191 or EIP-712."
  }),
  signature: Schema.String.annotate({
    description: "ERC-1271 signature; of a wallet that is not deployed in the form of ERC-6492."
  }),
  validUntil: Schema.Int.annotate({
    description:
      "Unix seconds: last second at which the signature holds without the wallet. 0: the wallet is deployed, and the signature holds until its configuration changes."
  })
}).annotate({ identifier: "SignedMessage" })

const Waiting = Schema.Struct({
  status: Schema.Literal(0).annotate({ description: "Not signed: validators are missing." }),
  signingHash: Schema.String.annotate({ description: "To be signed by further validators of the wallet." }),
  have: Schema.Int.annotate({
    description: "Validators at hand: those of proofs, and those that settings names."
  }),
  need: Schema.Int.annotate({ description: "Validators that must sign." })
}).annotate({ identifier: "UnsignedMessage" })

export const Response = Schema.Union([Signed, Waiting]).annotate({ identifier: "SignMessageResponse" })
export type Response = typeof Response.Type

const wrong = (path: string, message: string): Result.Result<never, InvalidRequest> =>
  Result.fail(invalidAt(path, message))

/** Characters of a message, and of a document as JSON. */
const mostCharacters = 65_536

const mostProofs = 32

/** A message that is read: its form under a wallet's domain, and what its signature allows. */
interface Read extends Pick<Signing.Content, "movements"> {
  readonly nest: (domain: NestedMessage.Domain) => NestedMessage.Nested
}

const personal = (message: string): Result.Result<Read, InvalidRequest> => {
  if (TypedData.read(message) !== null)
    return wrong("message", "it is typed data: send the document as typedData")
  return Result.mapBoth(PersonalMessage.bytes(message), {
    onFailure: (problem) => invalidAt("message", problem),
    onSuccess: (bytes): Read => {
      const hash = PersonalMessage.digest(bytes)
      return {
        nest: (domain) => NestedMessage.personal(hash, domain),
        movements: () => [Documents.message]
      }
    }
  })
}

const typed = (document: TypedData.Document): Result.Result<Read, InvalidRequest> => {
  const parts = TypedData.parts(document, {})
  if (Result.isFailure(parts)) return wrong("typedData", parts.failure)
  if (OperationProof.isOfDomain(document))
    return wrong(
      "typedData.domain.name",
      "documents of castellan, castellan approvals and ERC4337 move money: use another domain"
    )
  return parts.success.typeSorted.length > NestedMessage.maxDescription
    ? wrong("typedData.types", `expected at most ${NestedMessage.maxDescription} bytes of types`)
    : Result.succeed({
        nest: (domain) => NestedMessage.typedData(parts.success, domain),
        movements: () => Documents.of(parts.success)
      })
}

const readOf = ({ message, typedData }: Request): Result.Result<Read, InvalidRequest> => {
  if ((message === undefined) === (typedData === undefined))
    return wrong("message", "expected either message or typedData, and not both")
  if ((message ?? JSON.stringify(typedData)).length > mostCharacters)
    return wrong(
      message === undefined ? "typedData" : "message",
      `expected at most ${mostCharacters} characters`
    )
  return message === undefined ? typed(typedData ?? {}) : personal(message)
}

/** A proof of the request; its parts where they need the wallet's passkeys. */
interface Given {
  readonly path: string
  readonly partsOf: (config: WalletConfig) => Result.Result<Proof.Parts, string>
}

const givenOf = (
  { signature, validationData }: NonNullable<Request["proofs"]>[number],
  index: number
): Result.Result<Given, InvalidRequest> => {
  const path = `proofs[${index}]`
  if (signature !== undefined && validationData === undefined) {
    const parts = Result.flatMap(Proof.normalise(signature), Proof.decode)
    return Result.succeed({ path: `${path}.signature`, partsOf: () => parts })
  }
  if (signature !== undefined || validationData === undefined)
    return wrong(path, "expected either signature or validationData, and not both")
  const partsOf =
    (auth: WebAuthn.Auth): Given["partsOf"] =>
    ({ passkeys }) => {
      const index = WebAuthn.signedBy(auth, passkeys)
      return index === null
        ? Result.fail("the signature is by none of the wallet's passkeys")
        : Result.succeed({ ecdsa: Hex.empty, passkeys: [{ index, auth }] })
    }
  return Result.mapBoth(WebAuthn.read(validationData), {
    onFailure: ({ field, message }) => invalidAt(`${path}.validationData.${field}`, message),
    onSuccess: (auth) => ({ path: `${path}.validationData`, partsOf: partsOf(auth) })
  })
}

/** The parts of all given proofs, and their validators. A wrong part, or two of one validator, refuse the request. */
const collected = Effect.fnUntraced(function* (
  given: ReadonlyArray<Given>,
  config: WalletConfig,
  signingHash: Hex.Bytes32
) {
  const parts: Array<Proof.Parts> = []
  const by = new Map<ProofVerification.Validator, string>()
  for (const { partsOf, path } of given) {
    yield* EventLoop.breathe
    const refused = (problem: string) =>
      unprocessable("invalid_signature", [{ path, message: Reasons.text("invalidSignature", { problem }) }])
    const own = yield* Effect.fromResult(Result.mapError(partsOf(config), refused))
    const validators = yield* Effect.fromResult(
      Result.mapError(ProofVerification.validatorsOf(config, signingHash, own), ({ message }) =>
        refused(message)
      )
    )
    for (const validator of validators) {
      const before = by.get(validator)
      if (before !== undefined) return yield* refused(`validator ${validator} has signed ${before} already`)
      by.set(validator, path)
    }
    parts.push(own)
  }
  return { parts, by }
})

const sign = (caller: Caller, signer: Signer, digest: Hex.Bytes32, wallet: Address.Address, path: string) =>
  signer
    .sign(digest)
    .pipe(
      Keys.audited(caller, signer, digest, { purpose: "signMessage", wallet }),
      Effect.mapError(Keys.refusal(path))
    )

/** The deployer's authorisation that any EOA may use, for an hour of the chain's time. */
const authorised = Effect.fnUntraced(function* (
  caller: Caller,
  { chain, profile: { chainId }, trust }: Connection.Connection,
  wallet: Address.Address,
  { factory, ...making }: WalletSpecs.Making & { readonly factory: Address.Address }
) {
  const deployer = yield* Effect.mapError((yield* SystemSigners).deployer, Keys.refusal("account"))
  yield* KillSwitch.check({ what: { kind: "signer", address: deployer.address }, path: "account" })
  const block = yield* Effect.mapError((yield* ChainFacts).block(chain, "now"), Connection.refusal(trust))
  if (block === null) return yield* Snapshot.noBlock()
  const deployment = { ...making, deadline: block.timestamp + Deployment.maxLifeSeconds }
  const noted = yield* (yield* RequestJournal)
    .authorise({ ...deployment, chainId, factory, chainTime: block.timestamp })
    .pipe(Effect.orDie)
  if (!noted) return yield* unprocessable("deployment_pending")
  const digest = Deployment.digest({ chainId, factory }, deployment, Address.zero)
  const signature = yield* sign(caller, deployer, digest, wallet, "account")
  const data = Deployment.createWalletCall(deployment, Deployment.authorization(signature, Address.zero))
  return { deploy: { factory, data }, validUntil: deployment.deadline }
})

/** All of a signature but the keys' parts of it. Reads the wallet, and signs nothing. */
export const prepare = Effect.fnUntraced(function* (caller: Caller, request: Request) {
  const { account, proofs = [], settings } = request
  // The authorisation gives the described owners the address, with its balance.
  if (account !== undefined && !caller.principal.scopes.has("write"))
    return yield* unauthorized("scope_missing", [
      { path: "account", message: "the deployer authorises a wallet only for keys with the scope write" }
    ])
  yield* Decoding.own(settings.useABI)
  const { movements, nest } = yield* Effect.fromResult(readOf(request))
  if (proofs.length > mostProofs)
    return yield* Effect.fromResult(wrong("proofs", `expected at most ${mostProofs} proofs`))
  const given = yield* EventLoop.each(proofs, (proof, index) => Effect.fromResult(givenOf(proof, index)))
  const signers = yield* SignerAuthorization.signersOf(caller, settings)
  const connection = yield* Connection.openOperator(caller, settings, account !== undefined)
  const { config, domain, making, wallet } = yield* MessageWallet.read(caller, request, signers, connection)
  const nested = nest(domain)

  const { by, parts } = yield* collected(given, config, nested.signingHash)
  const able = [...signers.entries()].filter(
    ([, { address }]) => config.owners.includes(address) && !by.has(address)
  )
  const need = Math.max(config.threshold, 1)
  const signing = able.slice(0, Math.max(need - by.size, 0))
  const asker: Signing.Asker = {
    caller,
    endpoint: "/signMessage",
    signers: signing.map(([, { address }]) => address),
    wallet,
    chainId: connection.profile.chainId
  }
  const { signingHash: hash } = nested
  // The deployer's authorisation is of the wallet's chain, whichever chain a document names.
  const deployment = { hash, movements: () => [Reading.deployment(wallet)] }
  const contents: ReadonlyArray<Signing.Content> = [
    ...(making === null ? [] : [deployment]),
    { hash, movements }
  ]
  return {
    asker,
    connection,
    contents,
    have: by.size + able.length,
    making,
    need,
    nested,
    parts,
    signing,
    wallet
  }
})

/** Signs a message as a wallet, with the keys of settings and the proofs of others; or returns the hash that further validators must sign. */
export const run = Effect.fnUntraced(function* (caller: Caller, request: Request) {
  const { settings } = request
  const { asker, connection, contents, have, making, need, nested, parts, signing, wallet } = yield* prepare(
    caller,
    request
  )
  const { hash, signature, signingHash } = nested
  const { chain, profile, trust } = connection
  if (have < need) return { status: 0 as const, signingHash, have, need }

  yield* KillSwitch.check(OpContext.ofChain(profile.chainId, settings))
  for (const [place, { address }] of signing)
    yield* KillSwitch.check({ what: { kind: "signer", address }, path: OpContext.pathOf(settings, place) })
  const [refusal] = (yield* Signing.judge(asker, new Map(contents.entries()), "whole")).values()
  if (refusal !== undefined)
    return yield* unprocessable(refusal.code, [{ path: "", message: refusal.message, ...refusal.figures }])
  const authorisation = making === null ? null : yield* authorised(caller, connection, wallet, making)
  const own = yield* Effect.forEach(
    signing,
    ([place, signer]) => sign(caller, signer, signingHash, wallet, OpContext.pathOf(settings, place)),
    { concurrency: "unbounded" }
  )
  const inner = signature(
    Proof.encode({
      ecdsa: Hex.concat(...parts.map(({ ecdsa }) => ecdsa), ...own),
      passkeys: parts.flatMap(({ passkeys }) => passkeys)
    })
  )
  const checkData = Counterfactual.check(hash, inner)
  const answer = yield* Effect.mapError(
    chain.call(
      authorisation === null
        ? { to: wallet, data: checkData }
        : { data: Counterfactual.deployAndCheck(authorisation.deploy, wallet, checkData) }
    ),
    Connection.refusal(trust)
  )
  if (!answer.success || !Counterfactual.isValid(answer.data))
    return yield* unprocessable("invalid_signature", [
      { path: "", message: Reasons.text("refusedByWallet", { wallet }) }
    ])
  return {
    status: 1 as const,
    wallet,
    hash,
    signature: authorisation === null ? inner : Counterfactual.wrap(authorisation.deploy, inner),
    validUntil: authorisation?.validUntil ?? 0
  }
}, Span.named("SignMessage"))
