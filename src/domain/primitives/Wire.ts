import * as Exit from "effect/Exit"
import type * as JsonSchema from "effect/JsonSchema"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaGetter from "effect/SchemaGetter"
import * as SchemaIssue from "effect/SchemaIssue"
import type { InvalidValue } from "./InvalidValue.js"

/** A wire form as JSON schemas show it. The codec's `from` decides which values it reads. */
export const shown = <A>(wire: Schema.Codec<A>, jsonSchema: JsonSchema.JsonSchema): Schema.Codec<A> =>
  wire.check(Schema.makeFilter(() => true, { toJsonSchema: () => jsonSchema }))

/** Wire codec: what `from` reads comes in, what `to` writes goes out. */
export const codec = <I, A, E>(
  wire: Schema.Codec<I>,
  own: Schema.Codec<A, E>,
  from: (value: I) => Result.Result<NoInfer<E>, InvalidValue>,
  to: (value: NoInfer<E>) => NoInfer<I>
): Schema.Codec<A, I> =>
  wire.pipe(
    Schema.decodeTo(own, {
      decode: SchemaGetter.transformEffect((value) =>
        Result.match(from(value), {
          onFailure: ({ message }) => Exit.fail(new SchemaIssue.InvalidValue({ message })),
          onSuccess: Exit.succeed
        })
      ),
      encode: SchemaGetter.transform(to)
    })
  )
