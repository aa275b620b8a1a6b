import * as Nonce from "../../domain/erc4337/Nonce.js"
import type { NonceSpace } from "../ports/journal/Requests.js"

/**
 * The nonce keys of ops that are being prepared in this process. The journal owns the keys of accepted ops; what is chosen
 * here is a guess that acceptance judges, and that spares most requests another try.
 */

/** A look at the journal: what was given back before it began is known to it. */
export interface Look {
  readonly began: number
}

export interface Keys {
  readonly look: () => Look
  /** The look's keys are chosen: nothing is remembered for it any more. */
  readonly end: (look: Look) => void
  /**
   * The lowest key of the service's in that epoch that neither the journal nor another run here has in use; null: all are. It
   * is in use from here on.
   */
  readonly take: (space: NonceSpace, epoch: bigint, used: ReadonlySet<bigint>, look: Look) => bigint | null
  /** Its run is over: if an op was accepted under it, the journal knows. */
  readonly giveBack: (space: NonceSpace, key: bigint) => void
  /** Keys that are remembered. */
  readonly size: () => number
}

/** Null: the run goes on; else when it was given back. */
type Taken = number | null

const nameOf = ({ authority, chainId, entryPoint, wallet }: NonceSpace, key: bigint): string =>
  `${chainId} ${authority} ${entryPoint} ${wallet} ${key}`

export const make = (): Keys => {
  const taken = new Map<string, Taken>()
  const looks = new Set<Look>()
  let time = 0

  /** A look that began before a key was given back may not know of the op that has it now. */
  const forget = (): void => {
    const oldest = Math.min(...[...looks].map(({ began }) => began))
    for (const [name, at] of taken) if (at !== null && at <= oldest) taken.delete(name)
  }

  return {
    look: () => {
      time += 1
      const look = { began: time }
      looks.add(look)
      return look
    },
    end: (look) => {
      looks.delete(look)
      forget()
    },
    take: (space, epoch, used, { began }) => {
      const { from, to } = Nonce.inEpoch(Nonce.serviceKeys, epoch)
      for (let key = from; key <= to; key += 1n) {
        if (used.has(key)) continue
        const name = nameOf(space, key)
        const at = taken.get(name)
        if (at !== undefined && (at === null || at > began)) continue
        taken.set(name, null)
        return key
      }
      return null
    },
    giveBack: (space, key) => {
      time += 1
      taken.set(nameOf(space, key), time)
      if (looks.size === 0) forget()
    },
    size: () => taken.size
  }
}
