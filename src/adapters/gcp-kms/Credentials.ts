import { readFile } from "node:fs/promises"
import type { KeyManagementServiceClient } from "@google-cloud/kms"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { KeyProviderError } from "../../application/ports/KeyProvider.js"
import * as Failure from "./Failure.js"

export const unusable: KeyProviderError = Failure.make(
  "refused",
  "the file of the credentials can not be used"
)

/**
 * The JSON object in a file of credentials. The SDK would take what it can not parse for a private key, and fail with
 * the first signature.
 */
export const read = (file: string): Effect.Effect<Record<string, unknown>, KeyProviderError> =>
  Effect.tryPromise({
    try: async (signal): Promise<unknown> => JSON.parse(await readFile(file, { encoding: "utf8", signal })),
    catch: () => unusable
  }).pipe(Effect.filterOrFail(Predicate.isObject, () => unusable))

/** The client of a workload identity, by the part that trades its token for one of Google's. */
interface Exchanging {
  readonly transporter: unknown
  readonly stsCredential: { transporter: unknown }
}

const isExchanging = (client: object): client is Exchanging =>
  "transporter" in client &&
  "stsCredential" in client &&
  typeof client.stsCredential === "object" &&
  client.stsCredential !== null

/**
 * Finds the credentials, once. A workload identity would trade its token over connections of its own, retried and
 * without a time limit, and one trade that hangs holds up all calls: it gets the transport of the others.
 */
export const prepare = async (client: KeyManagementServiceClient): Promise<void> => {
  const found: object = await client.auth.getClient()
  if (isExchanging(found)) found.stsCredential.transporter = found.transporter
}
