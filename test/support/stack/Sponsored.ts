import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Contract } from "ethers"
import * as HoldFollower from "../../../src/application/payers/HoldFollower.js"
import { Budgets, type Figures } from "../../../src/application/ports/Budgets.js"
import type { Operation } from "../../../src/application/prepare/Operation.js"
import { Address, account, type Stack } from "./Stack.js"

/** State of a stack's sponsor. */
export interface Sponsored {
  /** Settings by which the operator's paymaster pays. */
  readonly settings: Stack["settings"] & { readonly paymaster: Address.Address }
  /** Charges against the account's budget of today. */
  readonly figures: () => Promise<Figures>
  /** The paymaster's deposit at an EntryPoint, that of the settings when left out. */
  readonly deposit: (entryPoint?: string) => Promise<bigint>
  /** Waits until no hold is left. */
  readonly settled: () => Promise<Figures>
  /** The wallet of the salt mints tokens to a receiver. */
  readonly mint: (salt: string, amount: bigint, rest?: Partial<Operation>) => Operation
  readonly minted: () => Promise<bigint>
}

const receiver = `0x${"c0".repeat(20)}`

export const sponsored = async (stack: Stack): Promise<Sponsored> => {
  const token = Address.unsafe(await stack.token.getAddress())
  const budget = { accountId: account, chainId: BigInt(stack.anvil.chainId), name: HoldFollower.budget }
  const figures = () =>
    stack.ask(
      Effect.gen(function* () {
        const budgets = yield* Budgets
        return yield* Effect.orDie(budgets.figures(budget, yield* Clock.currentTimeMillis, "day"))
      })
    )
  return {
    settings: { ...stack.settings, paymaster: Address.unsafe(stack.suite.paymaster) },
    figures,
    deposit: (entryPoint = stack.settings.entryPoint) =>
      new Contract(entryPoint, ["function balanceOf(address) view returns (uint256)"], stack.provider)
        .getFunction("balanceOf")
        .staticCall(stack.suite.paymaster),
    settled: async () => {
      for (const end = Date.now() + 15_000; ; ) {
        const found = await figures()
        if (found.held === 0n) return found
        if (Date.now() > end) throw new Error(`${found.held} wei are held still`)
        await new Promise((resolve) => setTimeout(resolve, 50))
      }
    },
    mint: (salt, amount, rest = {}) => ({
      salt,
      walletCustody: 1,
      to: token,
      funcSignature: "mint(address,uint256)",
      funcParams: [receiver, String(amount)],
      ...rest
    }),
    minted: () => stack.balanceOf(receiver)
  }
}
