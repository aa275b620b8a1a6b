import * as Either from "effect/Either"
import { InvalidSignature } from "./FunctionSignature.js"
import * as Grammar from "./Grammar.js"
import type { Parameter } from "./Parameter.js"

/**
 * The types that a call returns: `uint256`, `uint256,string`, `(uint256,string)`,
 * `returns (uint256 a, string b)`. Parentheses around the whole text are the list of return values, so one
 * tuple value is `((a,b))` or `tuple(a,b)`, and an array of tuples `(a,b)[]`. `()` returns nothing.
 */
export const parse = (text: string): Either.Either<ReadonlyArray<Parameter>, InvalidSignature> =>
  Either.mapLeft(
    Grammar.read(text, (reader) =>
      reader.take("returns") || reader.enclosed() ? reader.list({ indexed: false }) : reader.bareList()
    ),
    (why) => new InvalidSignature({ message: "invalid return signature", why })
  )
