import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Address from "../../../domain/primitives/Address.js"
import * as WalletReader from "../../../domain/wallet/WalletReader.js"
import type { ChainClient, ChainRpcError, StateOverride } from "../../ports/chain/ChainRpc.js"

/**
 * What stands at the wallets that are asked for at one moment leaves as one call: after a restart, or an outage, hundreds
 * of accepted requests ask at a time, and a node that counts calls would have two of each.
 */

/** Null: to be asked for alone. */
type Answer = Effect.Effect<WalletReader.Sight | null, ChainRpcError>

/** By wallet, all who ask for it; it is there until its call leaves. */
type Group = Map<Address.Address, Array<(answer: Answer) => void>>

/** Wallets in a call: under 5 million gas. */
const most = 128

const open = new WeakMap<ChainClient, Group>()

/** Where the program runs: what stands there can be no wallet. */
const overrides: ReadonlyMap<Address.Address, StateOverride> = new Map([
  [Address.zero, { code: WalletReader.program }]
])

/** The node refuses the call as such, or says what it did not return: it may do better with others. */
const isOfForm = ({ reason }: ChainRpcError): boolean =>
  reason === "rejected" || reason === "notAnRpc" || reason === "unsupported"

const tell = (group: Group, exit: Exit.Exit<ReadonlyArray<WalletReader.Sight> | null, ChainRpcError>) => {
  const answer = Exit.map(exit, (sights) => sights ?? [])
  for (const [place, askers] of [...group.values()].entries()) {
    const own = Exit.map(answer, (sights): WalletReader.Sight | null => {
      const sight = sights[place]
      // What failed may have had too little gas. Where there is no code, everything succeeds.
      return sight?.success === true ? sight : null
    })
    for (const resume of askers) resume(own)
  }
}

/** Asks for what stands at the address together with what else is asked for at this moment. */
export const ask = (chain: ChainClient, wallet: Address.Address): Answer =>
  Effect.withFiber((fiber) =>
    Effect.callback((resume) => {
      const present = open.get(chain)
      const askers = present?.get(wallet)
      if (present !== undefined && (askers !== undefined || present.size < most)) {
        present.set(wallet, [...(askers ?? []), resume])
        return
      }
      const group: Group = new Map([[wallet, [resume]]])
      open.set(chain, group)
      const close = (): void => {
        if (open.get(chain) === group) open.delete(chain)
      }
      const call = () => {
        close()
        return { to: Address.zero, data: WalletReader.encode([...group.keys()]) }
      }
      const look = chain.call(call, overrides).pipe(
        Effect.map(({ data, success }) =>
          success ? Result.getOrNull(WalletReader.decode(data, group.size)) : null
        ),
        Effect.catchIf(isOfForm, () => Effect.succeed(null))
      )
      // Whoever was first may give up while others wait.
      Effect.runForkWith(fiber.context)(look).addObserver((exit) => {
        close()
        tell(group, exit)
      })
    })
  )
