import * as Effect from "effect/Effect"
import * as ParseResult from "effect/ParseResult"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type { InvalidValue } from "./InvalidValue.js"

/** Wire codec: what `from` reads comes in, what `to` writes goes out. */
export const codec = <I, A, E>(
  wire: Schema.Codec<I>,
  own: Schema.Codec<A, E>,
  from: (value: I) => Result.Result<NoInfer<E>, InvalidValue>,
  to: (value: NoInfer<E>) => NoInfer<I>
): Schema.Codec<A, I> =>
  Schema.transformOrFail(wire, own, {
    strict: true,
    decode: (value, _, ast) =>
      Effect.fromResult(
        Result.mapError(from(value), ({ message }) => new ParseResult.Type(ast, value, message))
      ),
    encode: (value) => Effect.fromResult(ParseResult.succeed(to(value)))
  })
