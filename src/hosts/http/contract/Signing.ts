import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as GetBundlerAddress from "../../../application/endpoints/signing/GetBundlerAddress.js"
import * as GetSigner from "../../../application/endpoints/signing/GetSigner.js"
import * as SignMessage from "../../../application/endpoints/signing/SignMessage.js"
import * as SignMessages from "../../../application/endpoints/signing/SignMessages.js"
import type { Caller } from "../../../application/request/Caller.js"
import { Authentication, BodyOptional, describe, post, RequiredScope } from "./EndpointAnnotations.js"
import * as Sample from "./Sample.js"

const bundlerAddress = "The service's own submitting address, to which ops without a signer are bound."

export const group = HttpApiGroup.make("signing")
  .add(
    post("sign", "sign", SignMessages, {
      summary: "Sign messages",
      description: [
        "Signs each message with the signer's key. Plain: as EIP-191 personal message of the text; 0x and an even number of hex digits are their bytes.",
        "With hashed: 32 bytes as they are.",
        "With eip712: a JSON document of typed data is hashed as such, its domain completed from eip712 (a contradiction is an error); any other text is wrapped as Message(string contents) in the domain castellan, version 1, which needs eip712.address and eip712.chainId.",
        "Text of an object or array that names types or primaryType has to be good typed data, with eip712 and without: the error says where it breaks.",
        "Messages that could prove an operation are refused without allowOperationHash: with hashed false a message of exactly 32 bytes, and typed data of the domains castellan (except the wrapper), castellan approvals and ERC4337 (a hash of EntryPoint v0.8).",
        "A message that cannot be signed, or that a spending rule refuses, is an element of errors. Without spending rules a key with this scope can do everything that the account's signers can: every digest is in the service's log."
      ].join(" "),
      example: { messages: ["hello"], format: "rsv", signer: Sample.signer }
    }),
    post("signMessage", "sign", SignMessage, {
      summary: "Sign a message as a wallet",
      description: [
        "Signs a message or typed data as a wallet, so that applications verify it by the wallet's isValidSignature (ERC-1271).",
        "The message is nested under the wallet's own domain (ERC-7739): the signature holds for this wallet, this chain and this configuration only.",
        "The keys of settings.signer and settings.cosigners sign where they are owners, and proofs brings signatures of others.",
        "status 0: validators are missing. Let them sign signingHash, a passkey as its challenge, and post the request again with all proofs; the service stores none.",
        "status 1: the wallet itself has confirmed the signature, at the operator's node where the chain has one.",
        "A wallet that is not deployed needs account: its signature carries an authorisation of the deployer for an hour (ERC-6492), with which every EOA may deploy the wallet as described. For that the operator's node serves the request, the factory is the account's own, and the key needs the scope write too.",
        "Documents of the domains castellan, castellan approvals and ERC4337 are refused.",
        "A key with this scope can sign permits that move a wallet's tokens: every digest is in the service's log."
      ].join(" "),
      example: {
        wallet: Sample.recipient,
        walletCustody: 1,
        message: "hello",
        settings: { rpc: Sample.rpc, signer: Sample.signer }
      }
    }),
    post("getSigner", "read", GetSigner, {
      summary: "Get a signer's address",
      description: "Address, public key and kind of one of the account's signers.",
      example: { signer: Sample.signer }
    }),
    HttpApiEndpoint.post("getBundlerAddress", "/getbundleraddress", {
      disableCodecs: true,
      payload: GetBundlerAddress.Request,
      success: GetBundlerAddress.Response
    })
      .annotate(RequiredScope, "read")
      .annotate(BodyOptional, true)
      .annotateMerge(describe("Get the bundler's address", bundlerAddress, {})),
    HttpApiEndpoint.get("getBundlerAddressByGet", "/getbundleraddress", {
      disableCodecs: true,
      success: GetBundlerAddress.Response
    })
      .annotate(RequiredScope, "read")
      .annotateMerge(describe("Get the bundler's address", bundlerAddress))
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Sign messages; addresses of signers and of the bundler.")

export const useCases = {
  sign: SignMessages.run,
  signMessage: SignMessage.run,
  getSigner: GetSigner.run,
  getBundlerAddress: GetBundlerAddress.run,
  getBundlerAddressByGet: (caller: Caller) => GetBundlerAddress.run(caller, {})
}
