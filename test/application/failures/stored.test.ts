import { readFileSync } from "node:fs"
import { Effect, Result, Schema } from "effect"
import { describe, expect, it } from "vitest"
import * as Answer from "../../../src/application/answers/Answer.js"
import * as ExecuteEncoded from "../../../src/application/endpoints/operations/ExecuteEncoded.js"
import * as ExecuteOperations from "../../../src/application/endpoints/operations/ExecuteOperations.js"
import * as ExecutePasskey from "../../../src/application/endpoints/operations/ExecutePasskey.js"
import * as TransactSigner from "../../../src/application/endpoints/operations/TransactSigner.js"
import * as Unstuck from "../../../src/application/endpoints/operations/Unstuck.js"
import * as CreateWallets from "../../../src/application/endpoints/wallets/CreateWallets.js"

/** Journal contents written by an earlier version, by endpoint. */
const stored = JSON.parse(
  readFileSync(new URL("../../vectors/stored.json", import.meta.url), "utf8")
) as Readonly<
  Record<string, { readonly bodies: ReadonlyArray<unknown>; readonly answers?: ReadonlyArray<unknown> }>
> & {
  readonly refusals: ReadonlyArray<unknown>
}

interface Kind<A, I, B, J> {
  readonly endpoint: string
  readonly Request: Schema.Codec<A, I>
  readonly Response: Schema.Codec<B, J>
}

const holds = <A, I, B, J>({ endpoint, Request, Response }: Kind<A, I, B, J>) => {
  const { answers = [], bodies = [] } = stored[endpoint] ?? {}
  describe(`a request of ${endpoint} that an earlier version has stored`, () => {
    it.each(bodies)("is read, and written again as it was: %j", (body) => {
      const text = JSON.stringify(body)
      const request = Schema.decodeUnknownSync(Schema.fromJsonString(Request))(text)
      expect(JSON.stringify(Schema.encodeSync(Request)(request))).toBe(text)
    })

    it.each(answers)("has its answer: %j", async (answer) => {
      const text = JSON.stringify(answer)
      const read = await Effect.runPromise(Answer.decode(Response, text))
      expect(await Effect.runPromise(Answer.encode(Response, Result.succeed(read)))).toBe(text)
    })

    it.each(stored.refusals)("has its refusal: %j", async (refusal) => {
      const text = JSON.stringify(refusal)
      const read = await Effect.runPromise(Effect.flip(Answer.decode(Response, text)))
      expect(await Effect.runPromise(Answer.encode(Response, Result.fail(read)))).toBe(text)
    })
  })
}

holds(CreateWallets.kind)
holds(ExecuteOperations.kind)
holds(ExecuteEncoded.kind)
holds(ExecutePasskey.kind)
holds(TransactSigner.kind)
holds(Unstuck.kind)
