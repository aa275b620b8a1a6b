import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Fees from "../../domain/erc4337/gas/Fees.js"
import * as L1Fee from "../../domain/erc4337/gas/L1Fee.js"
import * as Hex from "../../domain/primitives/Hex.js"
import type { ChainClient } from "../ports/chain/ChainRpc.js"
import type { NetworkProfile } from "../ports/NetworkProfile.js"

/** Compares the configuration's amounts with the chain's prices. */

type Say = (severity: "broken" | "limited", message: string) => void

/** Prices up to this are probably meant in gwei; in wei only some layer 2 chains have such low prices. */
const mostGwei = 100_000n

const isLikelyGwei = (wei: bigint): boolean => wei > 0n && wei <= mostGwei

const inGwei = (wei: bigint): string => `fees are in wei, and ${wei} gwei are ${wei * 1_000_000_000n}`

/** Finds caps that block all sending now, and prices that seem to be in the wrong unit. */
const prices = ({ caps, minPriorityFeePerGas }: NetworkProfile, market: Fees.Market, say: Say): void => {
  const amounts = { ...caps, minPriorityFeePerGas }
  const below = Result.match(
    Fees.quote(market, amounts, (price) => price),
    {
      onSuccess: () => null,
      onFailure: ({ needed }) =>
        market.nextBaseFee !== null && minPriorityFeePerGas > caps.maxPriorityFeePerGas
          ? { name: "maxPriorityFeePerGas", than: `minPriorityFeePerGas, ${minPriorityFeePerGas} wei` }
          : { name: "maxFeePerGas", than: `the ${needed} wei that the chain asks for now` }
    }
  )
  for (const name of ["maxFeePerGas", "maxPriorityFeePerGas", "minPriorityFeePerGas"] as const) {
    const wei = amounts[name]
    const meant = isLikelyGwei(wei) ? `; it looks like gwei: ${inGwei(wei)}` : ""
    if (name === below?.name)
      say("broken", `${name} is ${wei} wei, less than ${below.than}: nothing is sent. Raise it${meant}`)
    else if (meant !== "") say("limited", `${name} is ${wei} wei${meant}. Write that, or leave the field out`)
  }
}

/** Gas of the smallest transaction; every operation takes more. */
const leastGas = 21_000n

const budget = ({ sponsor }: NetworkProfile, { nextBaseFee, tip }: Fees.Market, say: Say): void => {
  if (sponsor === null) return
  const { dailyBudget } = sponsor
  const least = leastGas * (nextBaseFee ?? tip)
  const remedy = "Set it to the wei that the wallets of one account may cost in one UTC day"
  if (dailyBudget === 0n) say("limited", `sponsor.dailyBudget is 0: nothing is sponsored. ${remedy}`)
  else if (dailyBudget < least)
    say(
      "limited",
      `sponsor.dailyBudget is ${dailyBudget} wei, and no operation costs less than ${least} now: nothing is sponsored. ${remedy}`
    )
}

export const inspect = (chain: ChainClient, profile: NetworkProfile, say: Say) =>
  Effect.map(chain.fees, (market) => {
    prices(profile, market, say)
    budget(profile, market, say)
  })

/** Whether the layer 1 fee for data is configured exactly where the chain charges it. */
export const layer1 = (chain: ChainClient, { l1Fee }: NetworkProfile, say: Say) =>
  Effect.map(chain.code(L1Fee.oracle), (code) => {
    const isThere = code !== Hex.empty
    if (isThere && l1Fee === null)
      say(
        "limited",
        `l1Fee is not set, and the chain has the oracle of OP-stack chains at ${L1Fee.oracle}: the fee of layer 1 for data is not counted, so that operations cost more than they pay for. Set "l1Fee": "op-stack"`
      )
    if (!isThere && l1Fee !== null)
      say(
        "broken",
        `l1Fee is "${l1Fee}", and the chain has no oracle at ${L1Fee.oracle}: no price can be made. Set "l1Fee": null`
      )
  })
