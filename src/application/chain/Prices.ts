import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Fees from "../../domain/erc4337/gas/Fees.js"
import * as Gas from "../../domain/erc4337/gas/Gas.js"
import type * as Percent from "../../domain/erc4337/Percent.js"
import { type Failure, unprocessable } from "../failures/Failure.js"
import * as Reasons from "../failures/Reasons.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"
import { type Connection, refusal } from "./Connection.js"

/** The price of a gas unit in the next block, with a buffer, within the operator's bounds. */
export const quote = (
  { caps, minPriorityFeePerGas }: NetworkProfile,
  market: Fees.Market,
  buffer: Percent.Percent
): Result.Result<Fees.FeePrices, Fees.AboveCap> =>
  Fees.quote(market, { ...caps, minPriorityFeePerGas }, (price) => Gas.overshoot(price, buffer))

export const offer = (
  profile: NetworkProfile,
  market: Fees.Market,
  buffer: Percent.Percent
): Result.Result<Fees.FeePrices, Failure> =>
  Result.mapError(quote(profile, market, buffer), ({ cap, needed }) =>
    unprocessable("fees_above_cap", [{ path: "", message: Reasons.text("gasPrice", { needed, cap }) }])
  )

export const now = ({ chain, profile, trust }: Connection, buffer: Percent.Percent) =>
  Effect.flatMap(Effect.mapError(chain.fees, refusal(trust)), (market) =>
    Effect.fromResult(offer(profile, market, buffer))
  )
