import * as GetBundlerAddress from "../../../application/signing/GetBundlerAddress.js"
import * as GetSigner from "../../../application/signing/GetSigner.js"
import * as SignMessages from "../../../application/signing/SignMessages.js"
import type { HandlersOf } from "../Handlers.js"
import type { group } from "./Api.js"

export const handlers = {
  sign: (caller, request) => SignMessages.run(caller, request),
  getSigner: (caller, request) => GetSigner.run(caller, request),
  getBundlerAddress: (caller, request) => GetBundlerAddress.run(caller, request),
  getBundlerAddressByGet: (caller) => GetBundlerAddress.run(caller, {})
} satisfies HandlersOf<typeof group, unknown>
