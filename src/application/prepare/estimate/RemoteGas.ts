import * as Effect from "effect/Effect"
import * as Redacted from "effect/Redacted"
import type { UserOperation } from "../../../domain/erc4337/UserOperation.js"
import type { Address } from "../../../domain/primitives/Address.js"
import { BundlerRpc } from "../../ports/chain/BundlerRpc.js"
import type { StateOverride } from "../../ports/chain/ChainRpc.js"
import type { OpContext } from "../OpContext.js"

/** More gas than any op can have; a bundler that wants it makes no sense. */
const mostGas = 2n ** 48n

/**
 * The least preVerificationGas that the profile's bundler takes for each of these ops, in their order; 0 where it does
 * not tell: it looks at each op alone, and one may depend on those before it. Whether it takes an op it says when it is
 * given it.
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
            Effect.as(Effect.logDebug(`the bundler does not estimate an op: ${message}`), 0n)
          )
        ),
      { concurrency: 8 }
    )
  })
