import * as Result from "effect/Result"
import * as Suggestion from "../../domain/primitives/Suggestion.js"
import * as Uint from "../../domain/primitives/Uint.js"

/** A request's reference to a block: a number, or a tag that the chain resolves. */
export type BlockReference = bigint | "latest" | "safe" | "finalized"

const tags: Readonly<Record<string, BlockReference>> = {
  earliest: 0n,
  latest: "latest",
  safe: "safe",
  finalized: "finalized",
  // No event of a pending block is part of the chain yet.
  pending: "latest"
}

const names = Object.keys(tags)

/** A hex or decimal number of at most 8 bytes, or a tag; `Failure` names the problem. */
export const parse = (text: string): Result.Result<BlockReference, string> => {
  const tag = Object.hasOwn(tags, text) ? tags[text] : undefined
  if (tag !== undefined) return Result.succeed(tag)
  return Result.mapError(
    Uint.from(text, 64),
    () =>
      `expected a block number, hex or decimal, or one of ${names.join(", ")}${Suggestion.tell(text, names)}`
  )
}
