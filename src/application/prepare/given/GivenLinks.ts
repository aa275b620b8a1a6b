import * as Result from "effect/Result"
import * as Dependencies from "../../../domain/erc4337/Dependencies.js"
import type { Address } from "../../../domain/primitives/Address.js"
import type * as Hex from "../../../domain/primitives/Hex.js"
import * as Ledger from "../../../domain/wallet/Ledger.js"
import * as WalletCalls from "../../../domain/wallet/WalletCalls.js"
import { type Failure, invalidAt } from "../../failures/Failure.js"
import type { OpContext } from "../OpContext.js"
import type { ParsedOp } from "./GivenOps.js"

const wrong = (index: number, message: string) =>
  Result.fail(invalidAt(`operations[${index}].encodedUserOp`, message))

const none = { records: [], requires: [] }

const linksOf = (ledger: Address | null, { op }: ParsedOp) =>
  ledger === null ? none : Ledger.linksOf(ledger, op.callData)

/**
 * Reads the ops' dependencies from their own calls of the ledger. 400 when an op depends on an op that is not in the
 * request, or that does not record its success: it could never be executed.
 */
export const dependencies = (
  given: ReadonlyArray<ParsedOp>,
  { connection: { profile }, entryPoint }: Pick<OpContext, "connection" | "entryPoint">
): Result.Result<Dependencies.Dependencies, Failure> =>
  Result.gen(function* () {
    const { ledger, remoteBundler } = profile
    const links = given.map((each) => linksOf(ledger, each))
    const on: Array<number | null> = []
    for (const [position, { requires }] of links.entries()) {
      const [required, ...others] = requires
      if (required === undefined) {
        on.push(null)
        continue
      }
      if (others.length > 0) yield* wrong(position, "it depends on more than one operation")
      if (remoteBundler !== null)
        yield* wrong(position, "it depends on another operation, which this chain's bundler cannot promise")
      const before = given.findIndex(
        ({ op }) =>
          op.sender === required.wallet && Ledger.key(entryPoint, op.sender, op.nonce) === required.key
      )
      if (before < 0)
        yield* wrong(
          position,
          `it depends on an operation of ${required.wallet} that is not in this request: send both together`
        )
      if (links[before]?.records.includes(required.key) !== true)
        yield* wrong(position, `it depends on operations[${before}], which does not record that it succeeded`)
      on.push(before)
    }
    yield* Result.mapError(Dependencies.check(on), ({ index, message }) =>
      invalidAt(`operations[${index}].encodedUserOp`, message)
    )
    return on
  })

/** Hex return data of an op's call; of a batch that the ledger links, the return data of the call in the middle. */
export const returnData = (ledger: Address | null, given: ParsedOp, data: Hex.Hex): Hex.Hex => {
  const { records, requires } = linksOf(ledger, given)
  const linked = Ledger.callResult({ records: records[0] ?? null, requires: requires[0] ?? null }, data)
  return linked ?? Result.getOrElse(WalletCalls.decodeExecuteResult(data), () => data)
}
