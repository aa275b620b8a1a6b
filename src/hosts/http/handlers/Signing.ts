import * as GetBundlerAddress from "../../../application/usecases/signing/GetBundlerAddress.js"
import * as GetSigner from "../../../application/usecases/signing/GetSigner.js"
import * as SignMessages from "../../../application/usecases/signing/SignMessages.js"
import type { group } from "../contract/Signing.js"
import type { HandlersOf } from "./Handlers.js"

export const handlers = {
  sign: (caller, request) => SignMessages.run(caller, request),
  getSigner: (caller, request) => GetSigner.run(caller, request),
  getBundlerAddress: (caller, request) => GetBundlerAddress.run(caller, request),
  getBundlerAddressByGet: (caller) => GetBundlerAddress.run(caller, {})
} satisfies HandlersOf<typeof group, unknown>
