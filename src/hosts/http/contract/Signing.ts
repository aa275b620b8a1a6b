import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as OpenApi from "effect/http-api/OpenApi"
import * as GetBundlerAddress from "../../../application/endpoints/signing/GetBundlerAddress.js"
import * as GetSigner from "../../../application/endpoints/signing/GetSigner.js"
import * as SignMessages from "../../../application/endpoints/signing/SignMessages.js"
import type { Caller } from "../../../application/request/Caller.js"
import { Authentication, BodyOptional, post, RequiredScope, said } from "./EndpointAnnotations.js"
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
        "A message that cannot be signed is an element of errors. A key with this scope can do everything that the account's signers can: every digest is in the service's log."
      ].join(" "),
      example: { messages: ["hello"], format: "rsv", signer: Sample.signer }
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
      .annotateMerge(said("Get the bundler's address", bundlerAddress, {})),
    HttpApiEndpoint.get("getBundlerAddressByGet", "/getbundleraddress", {
      disableCodecs: true,
      success: GetBundlerAddress.Response
    })
      .annotate(RequiredScope, "read")
      .annotateMerge(said("Get the bundler's address", bundlerAddress))
  )
  .middleware(Authentication)
  .annotate(OpenApi.Description, "Sign messages; addresses of signers and of the bundler.")

export const useCases = {
  sign: SignMessages.run,
  getSigner: GetSigner.run,
  getBundlerAddress: GetBundlerAddress.run,
  getBundlerAddressByGet: (caller: Caller) => GetBundlerAddress.run(caller, {})
}
