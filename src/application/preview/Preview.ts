import * as Option from "effect/Option"
import * as Schema from "effect/Schema"

/**
 * Schemas of previews, which show before the signature what an op would move.
 *
 * Gotchas: contracts' logs may lie, so `isVerified` says whether the balances agree. An executed op may act differently.
 */

const amount = Schema.String.annotate({ description: "Least units, decimal." })
const token = Schema.String.annotate({ description: "The token's contract; native: the chain's coin." })

/** A preview of one op. */
export const Preview = Schema.Struct({
  basis: Schema.Literals(["simulation", "calldata"]).annotate({
    description: "calldata: the node has no eth_simulateV1, and only known functions of the call were read."
  }),
  block: Schema.NullOr(Schema.String).annotate({
    description: "The block that it was simulated on; null: not simulated."
  }),
  transfers: Schema.Array(
    Schema.Struct({
      kind: Schema.Literals(["native", "erc20", "erc721", "erc1155"]),
      token,
      from: Schema.NullOr(Schema.String).annotate({
        description: "Null: the calldata does not show who sends."
      }),
      to: Schema.String,
      amount,
      id: Schema.NullOr(Schema.String).annotate({
        description: "Token id, decimal; null: none, or not read."
      })
    })
  ).annotate({ description: "In order, also those that others make because of the call." }),
  approvals: Schema.Array(
    Schema.Struct({
      kind: Schema.Literals(["erc20", "erc721", "all"]).annotate({
        description: "all: every token of the contract (setApprovalForAll)."
      }),
      token: Schema.String,
      spender: Schema.String,
      amount,
      isUnlimited: Schema.Boolean
    })
  ).annotate({
    description: "In order. The wallet's own; calldata may name another owner's. Amount 0 revokes."
  }),
  net: Schema.NullOr(
    Schema.Array(
      Schema.Struct({
        token,
        delta: Schema.String.annotate({
          description: "Least units, decimal; negative: the wallet loses them."
        }),
        isVerified: Schema.Boolean.annotate({
          description: "The balances changed as the contracts' logs say."
        })
      })
    )
  ).annotate({
    description: "The wallet's change of each token but ERC-1155, without fees; null: not simulated."
  }),
  fees: Schema.NullOr(
    Schema.Struct({
      payer: Schema.String,
      most: Schema.String.annotate({ description: "Wei that the op may cost at most." }),
      expected: Schema.String.annotate({
        description: "Wei at the block's base fee and the call's simulated gas."
      })
    })
  ).annotate({ description: "Null: the op is not prepared yet." }),
  tokens: Schema.Record(
    Schema.String,
    Schema.Struct({ symbol: Schema.String, decimals: Schema.Int })
  ).annotate({ description: "The tokens' own names and decimals, by contract. A name proves nothing." })
}).annotate({ identifier: "Preview" })
export type Preview = typeof Preview.Type

/** A preview, or the reason why there is none. */
export const fields = {
  preview: Schema.NullOr(Preview),
  previewError: Schema.NullOr(Schema.String).annotate({
    description: "Why there is no preview; null: there is one."
  })
}
export type Shown = Schema.Struct.Type<typeof fields>

/** The same of an op in an answer; absent where previews were not asked for. */
export const shown = {
  preview: Schema.optionalKey(fields.preview),
  previewError: Schema.optionalKey(fields.previewError)
}

/** The field of requests that ask for previews. */
export const wanted = Schema.Boolean.annotate({
  description: "True: shows what each op would move. Default false."
})

const Stored = Schema.Array(Schema.Struct({ index: Schema.Int, ...fields }))

/** A request's previews by index, in the order of its operations. */
export const stored = Schema.NullOr(Stored)

export const write: (previews: typeof Stored.Type) => string = Schema.encodeSync(
  Schema.fromJsonString(Stored)
)

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(Stored))

/** Null also for previews of another version. */
export const read = (text: string | null | undefined): typeof stored.Type =>
  Option.getOrNull(decode(text ?? ""))
