import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import { BundlerRpc } from "../../ports/chain/BundlerRpc.js"
import type { StateOverride } from "../../ports/chain/ChainRpc.js"
import type { OpContext } from "../OpContext.js"

/** More gas than any op can have; a bundler that requires it is wrong. */
const mostGas = 2n ** 48n

/**
 * The lowest preVerificationGas that the profile's bundler accepts for each of these ops, in order; 0 where it returns
 * none: it estimates each op separately, and an op may depend on those before it. The bundler decides about such an op
 * when it gets it.
 */
export const leastPreVerificationGas = (
  { connection, entryPoint, version }: OpContext,
  ops: ReadonlyArray<UserOperation>,
  state: ReadonlyMap<Address, StateOverride>
): Effect.Effect<ReadonlyArray<bigint>, never, BundlerRpc> =>
  Effect.gen(function* () {
    const { remoteBundler } = connection.profile
    if (remoteBundler === null) return ops.map(() => 0n)
    const bundlers = yield* BundlerRpc
    return yield* Effect.forEach(
      ops,
      (op) =>
        bundlers.connect(Redacted.value(remoteBundler)).pipe(
          Effect.flatMap((client) => client.preVerificationGas({ version, entryPoint, op }, state)),
          Effect.map((gas) => (gas < mostGas ? gas : 0n)),
          Effect.catch(({ message }) =>
            Effect.as(Effect.logDebug(`op not estimated by the bundler: ${message}`), 0n)
          )
        ),
      { concurrency: 8 }
    )
  })
